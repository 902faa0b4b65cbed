/* backends/cpu/kernels/sort_typed.h: sorts of entries, for one width of keys. sort.c includes this file once
 * per width, with ENTRY, KEY_BITS and TYPED(name), as in gemm/typed.h. An entry has 2 * KEY_BITS
 * bits: the key in the upper half, the index of its element, an i32, in the lower one. Entries are distinct,
 * and their order is the stable order of the keys. */

static void TYPED(insert)(ENTRY *v, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    ENTRY e = v[i];
    int64_t k = i;
    for (; k > 0 && v[k - 1] > e; k--) v[k] = v[k - 1];
    v[k] = e;
  }
}

/* Sorts by digits of 8 bits of the key, the lowest first, between v and `other`. A digit that all keys share
 * has no pass. */
static void TYPED(radix)(ENTRY *v, ENTRY *other, int64_t n) {
  ENTRY *from = v, *to = other;
  for (int32_t digit = 0; digit < KEY_BITS / 8; digit++) {
    int32_t shift = KEY_BITS + 8 * digit;
    int64_t starts[257] = {0};
    for (int64_t i = 0; i < n; i++) starts[((from[i] >> shift) & 255) + 1]++;
    if (starts[((from[0] >> shift) & 255) + 1] == n) continue;
    for (int32_t d = 0; d < 256; d++) starts[d + 1] += starts[d];
    for (int64_t i = 0; i < n; i++) to[starts[(from[i] >> shift) & 255]++] = from[i];
    ENTRY *swap = from;
    from = to;
    to = swap;
  }
  if (from != v) memcpy(v, from, (size_t)n * sizeof *v);
}

/* Lets v[at] sink in the heap of n entries, of which the largest is first. */
static void TYPED(sink)(ENTRY *v, int64_t n, int64_t at) {
  ENTRY e = v[at];
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && v[child + 1] > v[child]) child++;
    if (v[child] <= e) break;
    v[at] = v[child];
  }
  v[at] = e;
}

/* Sorts the k smallest of n entries to the front: a heap of the k smallest so far takes each smaller one. */
static void TYPED(select)(ENTRY *v, int64_t n, int64_t k) {
  for (int64_t i = k / 2; i-- > 0;) TYPED(sink)(v, k, i);
  for (int64_t i = k; i < n; i++) {
    if (v[i] >= v[0]) continue;
    v[0] = v[i];
    TYPED(sink)(v, k, 0);
  }
  for (int64_t left = k - 1; left > 0; left--) {
    ENTRY largest = v[0];
    v[0] = v[left];
    v[left] = largest;
    TYPED(sink)(v, left, 0);
  }
}

/* Sorts the first k of n entries. */
static void TYPED(sort)(void *entries, void *other, int64_t n, int64_t k) {
  if (n <= SORT_SHORT)
    TYPED(insert)(entries, n);
  else if (k <= n / SORT_SELECT)
    TYPED(select)(entries, n, k);
  else
    TYPED(radix)(entries, other, n);
}

/* Entries of n elements from index `at` on. */
static void TYPED(make)(void *entries, const uint64_t *keys, int64_t at, int64_t n) {
  ENTRY *v = (ENTRY *)entries + at;
  for (int64_t i = 0; i < n; i++) v[i] = (ENTRY)keys[i] << KEY_BITS | (uint32_t)(at + i);
}

static void TYPED(indices)(const void *entries, int64_t k, int32_t *index, int64_t stride) {
  const ENTRY *v = entries;
  for (int64_t i = 0; i < k; i++) index[i * stride] = (int32_t)(uint32_t)v[i];
}
