/* tests/unit/backends/nccl/stub.c: a libnccl.so.2 of version STUB_VERSION with no more functions than some.
 */
int ncclGetVersion(int *version);
int ncclGetUniqueId(void *id);

int ncclGetVersion(int *version) {
  *version = STUB_VERSION;
  return STUB_CODE;
}

int ncclGetUniqueId(void *id) {
  (void)id;
  return 0;
}
