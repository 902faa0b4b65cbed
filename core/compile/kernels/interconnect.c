/* core/compile/kernels/interconnect.c: predicted times of collectives. */
#include "core/compile/kernels/interconnect.h"

#include "tenon/plugin/communicator.h"

/* Enqueuing a collective and starting its kernels. */
static const double collective_start_s = 5e-6;

/* A ring of n members passes n - 1 pieces of an n-th (Patarasuk and Yuan, JPDC 69, 2009): reduce_scatter or
 * all_gather. */
static double ring_pass_s(int32_t n, double bytes, const tn_link_rate *link) {
  return (n - 1) * (link->latency_s + bytes / n / link->bytes_per_s);
}

/* Two binary trees, each with half of the vector, up and down (Sanders, Speck and Traeff, Parallel Computing
 * 35, 2009): all_reduce. */
static double double_tree_s(int32_t n, double bytes, const tn_link_rate *link) {
  int32_t depth = 0;
  while (depth < 30 && (1 << depth) < n) depth++;
  return 2 * (depth * link->latency_s + bytes / link->bytes_per_s);
}

/* Between n members that share no link. */
static double flat_collective_s(int32_t kind, int32_t n, double bytes, const tn_link_rate *link) {
  double pass = ring_pass_s(n, bytes, link);
  if (n <= 1) return 0;
  if (kind != TN_ALL_REDUCE) return pass;
  double tree = double_tree_s(n, bytes, link);
  return 2 * pass < tree ? 2 * pass : tree;
}

/* The ranks of a host scatter, the hosts exchange the pieces of all their ranks at once, and the ranks of a
 * host gather. */
double tn_collective_s(const tn_interconnect *c, int32_t kind, double bytes) {
  int32_t inside = c->host_ranks < c->ranks ? c->host_ranks : c->ranks;
  int32_t hosts = inside < 1 ? 1 : (c->ranks + inside - 1) / inside;
  double passes = kind == TN_ALL_REDUCE ? 2 : 1;
  if (hosts == 1) return collective_start_s + flat_collective_s(kind, inside, bytes, &c->inside);
  return collective_start_s + passes * ring_pass_s(inside, bytes, &c->inside) +
         flat_collective_s(kind, hosts, bytes, &c->between);
}
