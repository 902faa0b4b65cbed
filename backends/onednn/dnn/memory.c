/* backends/onednn/dnn/memory.c: types and layouts as oneDNN describes them. */
#include "dnn/dnn.h"

dnnl_data_type_t tn_dnn_dtype(int32_t dtype) {
  switch (dtype) {
  case TN_F32: return dnnl_f32;
  case TN_BF16: return dnnl_bf16;
  case TN_F16: return dnnl_f16;
  case TN_I32: return dnnl_s32;
  case TN_U8: return dnnl_u8;
  default: return dnnl_data_type_undef;
  }
}

static tn_status check_type(tn_env *env, const tn_type *type) {
  if (tn_dnn_dtype(type->dtype) == dnnl_data_type_undef)
    return tn_fail(env, TN_EUNSUPPORTED, "dtype", "oneDNN has no %s", tn_dtype_name(type->dtype));
  if (type->rank < 1 || tn_type_count(type) == 0)
    return tn_fail(env, TN_EUNSUPPORTED, "shape", "oneDNN has no tensors without dimensions or elements");
  return TN_OK;
}

/* Strides of the outer axes, from the innermost outwards; inner blocks are dense. */
static tn_status fill_blocks(tn_env *env, const tn_type *type, const tn_layout *layout,
                             dnnl_memory_desc_t *desc) {
  dnnl_blocking_desc_t *b = &desc->format_desc.blocking;
  int64_t outer[TN_MAX_RANK], stride = 1;
  for (int32_t i = 0; i < type->rank; i++) outer[i] = type->dims[i];
  b->inner_nblks = layout->n_blocks;
  for (int32_t i = 0; i < layout->n_blocks; i++) {
    int64_t size = layout->block[i].size, dim = layout->block[i].dim;
    b->inner_blks[i] = size;
    b->inner_idxs[i] = dim;
    desc->padded_dims[dim] = (outer[dim] + size - 1) / size * size;
    if (outer[dim] % size != 0 && outer[dim] != type->dims[dim])
      return tn_fail(env, TN_EUNSUPPORTED, "layout", "oneDNN does not pad inside of blocks");
    outer[dim] = (outer[dim] + size - 1) / size;
    stride *= size;
  }
  for (int32_t i = type->rank; i-- > 0;) {
    int32_t dim = layout->set ? layout->order[i] : i;
    b->strides[dim] = stride;
    stride *= outer[dim];
  }
  return TN_OK;
}

tn_status tn_dnn_memory(tn_env *env, const tn_type *type, const tn_layout *layout, dnnl_memory_desc_t *desc) {
  dnnl_dims_t dims = {0};
  tn_status status = check_type(env, type);
  if (status != TN_OK) return status;
  for (int32_t i = 0; i < type->rank; i++) dims[i] = type->dims[i];
  TN_DNN_TRY(env, dnnl_memory_desc_init_by_strides(desc, type->rank, dims, tn_dnn_dtype(type->dtype), NULL));
  if (layout->n_blocks > 0)
    for (int32_t i = 0; i < type->rank; i++) desc->padded_dims[i] = dims[i];
  return fill_blocks(env, type, layout, desc);
}

tn_status tn_dnn_memory_any(tn_env *env, const tn_type *type, dnnl_memory_desc_t *desc) {
  dnnl_dims_t dims = {0};
  tn_status status = check_type(env, type);
  if (status != TN_OK) return status;
  for (int32_t i = 0; i < type->rank; i++) dims[i] = type->dims[i];
  TN_DNN_TRY(env, dnnl_memory_desc_init_by_tag(desc, type->rank, dims, tn_dnn_dtype(type->dtype),
                                               dnnl_format_tag_any));
  return TN_OK;
}
