/* plugins/transforms/geometry/projective.c: the algebra of maps. */
#include "plugins/transforms/geometry/geometry.h"

#include <math.h>

void projective_point(const projective *a, double x, double y, double to[2]) {
  const double *m = a->m;
  double w = m[6] * x + m[7] * y + m[8];
  to[0] = (m[0] * x + m[1] * y + m[2]) / w;
  to[1] = (m[3] * x + m[4] * y + m[5]) / w;
}

/* The transposed matrix of cofactors; a map has no scale, so it is not divided by the determinant. */
int projective_inverse(const projective *a, projective *inverse) {
  const double *m = a->m;
  double *to = inverse->m;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      int r = (j + 1) % 3, s = (j + 2) % 3, u = (i + 1) % 3, v = (i + 2) % 3;
      to[i * 3 + j] = m[r * 3 + u] * m[s * 3 + v] - m[r * 3 + v] * m[s * 3 + u];
    }
  double determinant = m[0] * to[0] + m[1] * to[3] + m[2] * to[6];
  return isfinite(determinant) && determinant != 0;
}

projective projective_of_affine(const affine *by, double height, double width) {
  const double *m = by->m, cx = width / 2, cy = height / 2;
  return (projective){{m[0], m[1], m[2] + cx - m[0] * cx - m[1] * cy, m[3], m[4],
                       m[5] + cy - m[3] * cx - m[4] * cy, 0, 0, 1}};
}

/* Gaussian elimination of 8 equations with the largest pivot. */
static int projective_solve(double a[8][9]) {
  for (int i = 0; i < 8; i++) {
    int best = i;
    for (int r = i + 1; r < 8; r++)
      if (fabs(a[r][i]) > fabs(a[best][i])) best = r;
    if (!(fabs(a[best][i]) > 1e-12)) return 0;
    for (int j = 0; j < 9; j++) {
      double t = a[i][j];
      a[i][j] = a[best][j];
      a[best][j] = t;
    }
    for (int r = 0; r < 8; r++) {
      double by = r == i ? 0 : a[r][i] / a[i][i];
      for (int j = i; j < 9; j++) a[r][j] -= by * a[i][j];
    }
  }
  return 1;
}

int projective_between(const double from[8], const double to[8], projective *map) {
  double a[8][9] = {{0}};
  for (int i = 0; i < 4; i++) {
    double x = from[2 * i], y = from[2 * i + 1];
    for (int axis = 0; axis < 2; axis++) {
      double *row = a[2 * i + axis], result = to[2 * i + axis];
      row[3 * axis] = x;
      row[3 * axis + 1] = y;
      row[3 * axis + 2] = 1;
      row[6] = -result * x;
      row[7] = -result * y;
      row[8] = result;
    }
  }
  if (!projective_solve(a)) return 0;
  for (int i = 0; i < 8; i++) map->m[i] = a[i][8] / a[i][i];
  map->m[8] = 1;
  return 1;
}
