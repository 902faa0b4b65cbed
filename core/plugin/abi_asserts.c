/* core/plugin/abi_asserts.c: the binary interface, pinned. Written by tools/pin-abi.
 *
 * Size, alignment and offsets of every public struct on machines with 64-bit pointers. A change that breaks
 * an assertion changes the interface: raise TN_ABI_MINOR where a member is appended to a struct that may
 * grow, TN_ABI_MAJOR otherwise, and then run tools/pin-abi. Structs that may grow at their end: SIZED begins
 * with struct_size, which its maker sets; HANDLE with a tn_env and struct_size, which the host sets; ITEM
 * with a tn_item, whose struct_size is that of the whole item; of the PLAIN ones the attributes of Tenon's
 * ops, which the host makes, and tn_option, the stride of which the item says. The other PLAIN structs lie in
 * arrays and in other structs, or are passed by value: no member is ever appended. */
#include <stdint.h>

#include "tenon/api.h"
#include "tenon/attributes.h"
#include "tenon/base.h"
#include "tenon/build.h"
#include "tenon/conformance.h"
#include "tenon/context.h"
#include "tenon/env.h"
#include "tenon/export.h"
#include "tenon/file_names.h"
#include "tenon/folders.h"
#include "tenon/import.h"
#include "tenon/inspect.h"
#include "tenon/model.h"
#include "tenon/op_functions.h"
#include "tenon/ops.h"
#include "tenon/option.h"
#include "tenon/plugin/backend.h"
#include "tenon/plugin/communicator.h"
#include "tenon/plugin/cuda.h"
#include "tenon/plugin/functions.h"
#include "tenon/plugin/kernel.h"
#include "tenon/plugin/layer.h"
#include "tenon/plugin/observer.h"
#include "tenon/plugin/op.h"
#include "tenon/plugin/optimizer.h"
#include "tenon/plugin/plugin.h"
#include "tenon/plugin/precision.h"
#include "tenon/plugin/schedule.h"
#include "tenon/plugin/source.h"
#include "tenon/plugin/storage.h"
#include "tenon/plugin/transform.h"
#include "tenon/random.h"
#include "tenon/run.h"
#include "tenon/session.h"
#include "tenon/tensor.h"
#include "tenon/tokenizer.h"

/* clang-format off */
#if UINTPTR_MAX == UINT64_MAX

#define AT(T, member, offset) _Static_assert(offsetof(T, member) == (offset), #T "." #member " has moved")
#define PLAIN(T, bytes, alignment) \
  _Static_assert(sizeof(T) == (bytes) && _Alignof(T) == (alignment), #T " has another size")
#define SIZED(T, bytes, alignment) \
  PLAIN(T, bytes, alignment); \
  _Static_assert(offsetof(T, struct_size) == 0, #T " does not begin with struct_size")
#define HANDLE(T, bytes, alignment) \
  PLAIN(T, bytes, alignment); \
  _Static_assert(offsetof(T, env) == 0 && offsetof(T, struct_size) == sizeof(tn_env), \
                 #T " does not begin with env and struct_size")
#define ITEM(T, bytes, alignment) \
  PLAIN(T, bytes, alignment); \
  _Static_assert(offsetof(T, item) == 0 && offsetof(tn_item, struct_size) == 0, #T " does not begin with its item")

/* tenon/api.h */
SIZED(tn_api, 448, 8); AT(tn_api, major, 4); AT(tn_api, minor, 6); AT(tn_api, fail, 8); AT(tn_api, log, 16);
AT(tn_api, alloc, 24); AT(tn_api, free, 32); AT(tn_api, begin, 40); AT(tn_api, arg, 48);
AT(tn_api, set_int, 56); AT(tn_api, set_float, 64); AT(tn_api, set_ints, 72); AT(tn_api, set_floats, 80);
AT(tn_api, set_text, 88); AT(tn_api, end, 96); AT(tn_api, result, 104); AT(tn_api, type, 112);
AT(tn_api, n_in, 120); AT(tn_api, in, 128); AT(tn_api, out, 136); AT(tn_api, dout, 144);
AT(tn_api, want, 152); AT(tn_api, yield, 160); AT(tn_api, param, 168); AT(tn_api, state, 176);
AT(tn_api, commit, 184); AT(tn_api, layer, 192); AT(tn_api, option_value, 200); AT(tn_api, counter, 208);
AT(tn_api, random_stream, 216); AT(tn_api, training, 224); AT(tn_api, ranks, 232); AT(tn_api, status, 240);
AT(tn_api, variant, 248); AT(tn_api, parallel, 256); AT(tn_api, field, 264); AT(tn_api, make_folder, 272);
AT(tn_api, frozen, 280); AT(tn_api, stopping, 288); AT(tn_api, tokenizer_open, 296);
AT(tn_api, tokenizer_open_text, 304); AT(tn_api, tokenizer_of_characters, 312);
AT(tn_api, tokenizer_close, 320); AT(tn_api, tokenizer_json, 328); AT(tn_api, tokenizer_size, 336);
AT(tn_api, tokenizer_id, 344); AT(tn_api, tokenizer_token, 352); AT(tn_api, tokenizer_encode, 360);
AT(tn_api, tokenizer_decode, 368); AT(tn_api, token_stream_open, 376); AT(tn_api, token_stream_next, 384);
AT(tn_api, token_stream_end, 392); AT(tn_api, token_stream_close, 400); AT(tn_api, tokenizer_encode_all, 408);
AT(tn_api, learnt, 416); AT(tn_api, part_open, 424); AT(tn_api, shards, 432); AT(tn_api, wrap, 440);

/* tenon/attributes.h */
PLAIN(tn_cast_attributes, 4, 4); AT(tn_cast_attributes, to, 0);
PLAIN(tn_affine_attributes, 16, 8); AT(tn_affine_attributes, scale, 0); AT(tn_affine_attributes, shift, 8);
PLAIN(tn_full_attributes, 32, 8); AT(tn_full_attributes, dims, 0); AT(tn_full_attributes, value, 16);
AT(tn_full_attributes, dtype, 24);
PLAIN(tn_iota_attributes, 32, 8); AT(tn_iota_attributes, dims, 0); AT(tn_iota_attributes, axis, 16);
AT(tn_iota_attributes, dtype, 24);
PLAIN(tn_broadcast_attributes, 16, 8); AT(tn_broadcast_attributes, dims, 0);
PLAIN(tn_random_attributes, 48, 8); AT(tn_random_attributes, dims, 0); AT(tn_random_attributes, stream, 16);
AT(tn_random_attributes, a, 24); AT(tn_random_attributes, b, 32); AT(tn_random_attributes, dtype, 40);
PLAIN(tn_spread_attributes, 40, 8); AT(tn_spread_attributes, starts, 0); AT(tn_spread_attributes, index, 16);
AT(tn_spread_attributes, count, 32);
PLAIN(tn_numbers_attributes, 32, 8); AT(tn_numbers_attributes, v, 0);
PLAIN(tn_quantize_attributes, 16, 8); AT(tn_quantize_attributes, bits, 0);
AT(tn_quantize_attributes, axis, 8);
PLAIN(tn_gelu_attributes, 4, 4); AT(tn_gelu_attributes, approximate, 0);
PLAIN(tn_leaky_relu_attributes, 8, 8); AT(tn_leaky_relu_attributes, slope, 0);
PLAIN(tn_dropout_attributes, 16, 8); AT(tn_dropout_attributes, p, 0); AT(tn_dropout_attributes, stream, 8);
PLAIN(tn_reduce_attributes, 24, 8); AT(tn_reduce_attributes, axes, 0); AT(tn_reduce_attributes, keep, 16);
PLAIN(tn_all_reduce_attributes, 4, 4); AT(tn_all_reduce_attributes, reduction, 0);
PLAIN(tn_reduce_scatter_attributes, 16, 8); AT(tn_reduce_scatter_attributes, ranks, 0);
AT(tn_reduce_scatter_attributes, reduction, 8);
PLAIN(tn_all_gather_attributes, 8, 8); AT(tn_all_gather_attributes, ranks, 0);
PLAIN(tn_axis_attributes, 8, 8); AT(tn_axis_attributes, axis, 0);
PLAIN(tn_matmul_attributes, 12, 4); AT(tn_matmul_attributes, transpose_a, 0);
AT(tn_matmul_attributes, transpose_b, 4); AT(tn_matmul_attributes, math, 8);
PLAIN(tn_conv2d_attributes, 80, 8); AT(tn_conv2d_attributes, stride, 0);
AT(tn_conv2d_attributes, padding, 16); AT(tn_conv2d_attributes, dilation, 32);
AT(tn_conv2d_attributes, groups, 48); AT(tn_conv2d_attributes, dims, 56); AT(tn_conv2d_attributes, math, 72);
PLAIN(tn_pool2d_attributes, 72, 8); AT(tn_pool2d_attributes, kernel, 0); AT(tn_pool2d_attributes, stride, 16);
AT(tn_pool2d_attributes, padding, 32); AT(tn_pool2d_attributes, ceil, 48);
AT(tn_pool2d_attributes, include_pad, 52); AT(tn_pool2d_attributes, dims, 56);
PLAIN(tn_norm_attributes, 32, 8); AT(tn_norm_attributes, epsilon, 0); AT(tn_norm_attributes, trailing, 8);
AT(tn_norm_attributes, ranks, 16); AT(tn_norm_attributes, groups, 24);
PLAIN(tn_local_response_norm_attributes, 32, 8); AT(tn_local_response_norm_attributes, size, 0);
AT(tn_local_response_norm_attributes, alpha, 8); AT(tn_local_response_norm_attributes, beta, 16);
AT(tn_local_response_norm_attributes, k, 24);
PLAIN(tn_cross_entropy_attributes, 24, 8); AT(tn_cross_entropy_attributes, axis, 0);
AT(tn_cross_entropy_attributes, ignore, 8); AT(tn_cross_entropy_attributes, smoothing, 16);
PLAIN(tn_attention_attributes, 56, 8); AT(tn_attention_attributes, causal, 0);
AT(tn_attention_attributes, scale, 8); AT(tn_attention_attributes, math, 16);
AT(tn_attention_attributes, heads, 24); AT(tn_attention_attributes, window, 32);
AT(tn_attention_attributes, softcap, 40); AT(tn_attention_attributes, alibi, 48);
PLAIN(tn_rotary_attributes, 24, 8); AT(tn_rotary_attributes, heads, 0); AT(tn_rotary_attributes, base, 8);
AT(tn_rotary_attributes, interleaved, 16); AT(tn_rotary_attributes, inverse, 20);
PLAIN(tn_recurrence_attributes, 8, 4); AT(tn_recurrence_attributes, cell, 0);
AT(tn_recurrence_attributes, reverse, 4);
PLAIN(tn_embedding_grad_attributes, 8, 8); AT(tn_embedding_grad_attributes, rows, 0);
PLAIN(tn_scatter_attributes, 16, 8); AT(tn_scatter_attributes, axis, 0); AT(tn_scatter_attributes, mode, 8);
PLAIN(tn_sort_attributes, 32, 8); AT(tn_sort_attributes, axis, 0); AT(tn_sort_attributes, descending, 8);
AT(tn_sort_attributes, k, 16); AT(tn_sort_attributes, largest, 24);
PLAIN(tn_cumulative_attributes, 24, 8); AT(tn_cumulative_attributes, axis, 0);
AT(tn_cumulative_attributes, mode, 8); AT(tn_cumulative_attributes, exclusive, 12);
AT(tn_cumulative_attributes, reverse, 16);
PLAIN(tn_reshape_attributes, 16, 8); AT(tn_reshape_attributes, dims, 0);
PLAIN(tn_transpose_attributes, 16, 8); AT(tn_transpose_attributes, order, 0);
PLAIN(tn_slice_attributes, 48, 8); AT(tn_slice_attributes, starts, 0); AT(tn_slice_attributes, stops, 16);
AT(tn_slice_attributes, steps, 32);
PLAIN(tn_crop_attributes, 16, 8); AT(tn_crop_attributes, size, 0);
PLAIN(tn_pad_attributes, 48, 8); AT(tn_pad_attributes, low, 0); AT(tn_pad_attributes, high, 16);
AT(tn_pad_attributes, inner, 32);
PLAIN(tn_pack_attributes, 40, 8); AT(tn_pack_attributes, offsets, 0); AT(tn_pack_attributes, count, 16);
AT(tn_pack_attributes, region, 24); AT(tn_pack_attributes, start, 32);
PLAIN(tn_mask_attributes, 24, 8); AT(tn_mask_attributes, rows, 0); AT(tn_mask_attributes, columns, 8);
AT(tn_mask_attributes, diagonal, 16);
PLAIN(tn_shuffle_attributes, 16, 8); AT(tn_shuffle_attributes, factor, 0);
AT(tn_shuffle_attributes, groups, 8);

/* tenon/base.h */
PLAIN(tn_type, 72, 8); AT(tn_type, dtype, 0); AT(tn_type, rank, 4); AT(tn_type, dims, 8);
PLAIN(tn_block, 4, 2); AT(tn_block, dim, 0); AT(tn_block, size, 2);
PLAIN(tn_layout, 26, 2); AT(tn_layout, set, 0); AT(tn_layout, n_blocks, 1); AT(tn_layout, order, 2);
AT(tn_layout, block, 10);

/* tenon/build.h */
PLAIN(tn_build, 16, 8); AT(tn_build, env, 0);

/* tenon/conformance.h */
SIZED(tn_conformance_options, 96, 8); AT(tn_conformance_options, only, 8);
AT(tn_conformance_options, plugin, 16); AT(tn_conformance_options, unsupported, 24);
AT(tn_conformance_options, draws, 32); AT(tn_conformance_options, say, 40);
AT(tn_conformance_options, user, 48); AT(tn_conformance_options, begin, 56);
AT(tn_conformance_options, uncaptured, 64); AT(tn_conformance_options, settings, 72);
AT(tn_conformance_options, after, 80); AT(tn_conformance_options, quick, 88);

/* tenon/context.h */
SIZED(tn_context_options, 56, 8); AT(tn_context_options, realloc, 8);
AT(tn_context_options, realloc_user, 16); AT(tn_context_options, log, 24);
AT(tn_context_options, log_user, 32); AT(tn_context_options, log_level, 40);
AT(tn_context_options, plugin_folder, 48);

/* tenon/env.h */
PLAIN(tn_env, 16, 8); AT(tn_env, api, 0); AT(tn_env, record, 8);

/* tenon/export.h */
SIZED(tn_export_options, 24, 4); AT(tn_export_options, opset, 4); AT(tn_export_options, fold, 8);
AT(tn_export_options, external, 12); AT(tn_export_options, precision, 16);
AT(tn_export_options, preprocess, 20);
SIZED(tn_export_c_options, 16, 8); AT(tn_export_c_options, batch, 8);

/* tenon/folders.h */
SIZED(tn_convert_options, 12, 4); AT(tn_convert_options, dtype, 4); AT(tn_convert_options, optimizer, 8);

/* tenon/import.h */
SIZED(tn_import_options, 24, 8); AT(tn_import_options, n_constants, 4); AT(tn_import_options, constants, 8);
AT(tn_import_options, flat, 16);

/* tenon/option.h */
PLAIN(tn_ints, 16, 8); AT(tn_ints, n, 0); AT(tn_ints, v, 8);
PLAIN(tn_floats, 16, 8); AT(tn_floats, n, 0); AT(tn_floats, v, 8);
PLAIN(tn_transform_part, 16, 8); AT(tn_transform_part, transform, 0); AT(tn_transform_part, options, 8);
PLAIN(tn_transforms, 16, 8); AT(tn_transforms, n, 0); AT(tn_transforms, v, 8);
PLAIN(tn_schedule_part, 16, 8); AT(tn_schedule_part, schedule, 0); AT(tn_schedule_part, options, 8);
PLAIN(tn_schedules, 16, 8); AT(tn_schedules, n, 0); AT(tn_schedules, v, 8);
PLAIN(tn_option, 48, 8); AT(tn_option, name, 0); AT(tn_option, type, 8); AT(tn_option, flags, 12);
AT(tn_option, offset, 16); AT(tn_option, bytes, 20); AT(tn_option, default_text, 24);
AT(tn_option, range, 32); AT(tn_option, doc, 40);

/* tenon/plugin/backend.h */
SIZED(tn_backend_library, 32, 8); AT(tn_backend_library, name, 8); AT(tn_backend_library, version, 16);
AT(tn_backend_library, path, 24);
ITEM(tn_backend, 336, 8); AT(tn_backend, extends, 40); AT(tn_backend, accepts, 48); AT(tn_backend, open, 56);
AT(tn_backend, close, 64); AT(tn_backend, count, 72); AT(tn_backend, properties, 80);
AT(tn_backend, device_open, 88); AT(tn_backend, device_close, 96); AT(tn_backend, memory_new, 104);
AT(tn_backend, memory_delete, 112); AT(tn_backend, stream_new, 120); AT(tn_backend, stream_delete, 128);
AT(tn_backend, stream_wait, 136); AT(tn_backend, event_new, 144); AT(tn_backend, event_delete, 152);
AT(tn_backend, event_record, 160); AT(tn_backend, event_await, 168); AT(tn_backend, event_wait, 176);
AT(tn_backend, copy, 184); AT(tn_backend, fill_zero, 192); AT(tn_backend, takes, 200);
AT(tn_backend, enqueue, 208); AT(tn_backend, parallel, 216); AT(tn_backend, capture, 224);
AT(tn_backend, capture_launch, 232); AT(tn_backend, capture_delete, 240); AT(tn_backend, native, 248);
AT(tn_backend, library, 256); AT(tn_backend, event_done, 264); AT(tn_backend, preference, 272);
AT(tn_backend, event_seconds, 280); AT(tn_backend, finish_prepare, 288); AT(tn_backend, memory_info, 296);
AT(tn_backend, open_described, 304); AT(tn_backend, better_policy, 312); AT(tn_backend, range_begin, 320);
AT(tn_backend, range_end, 328);

/* tenon/plugin/communicator.h */
SIZED(tn_collective, 64, 8); AT(tn_collective, kind, 4); AT(tn_collective, reduction, 8);
AT(tn_collective, dtype, 12); AT(tn_collective, root, 16); AT(tn_collective, count, 24);
AT(tn_collective, from, 32); AT(tn_collective, to, 40); AT(tn_collective, name, 48);
AT(tn_collective, cost_s, 56);
SIZED(tn_comm_device, 24, 8); AT(tn_comm_device, index, 4); AT(tn_comm_device, device, 8);
AT(tn_comm_device, native, 16);
SIZED(tn_comm_place, 72, 8); AT(tn_comm_place, rank, 4); AT(tn_comm_place, ranks, 8);
AT(tn_comm_place, process, 12); AT(tn_comm_place, processes, 16); AT(tn_comm_place, address, 24);
AT(tn_comm_place, timeout_s, 32); AT(tn_comm_place, has_failed, 40); AT(tn_comm_place, run, 48);
AT(tn_comm_place, prove, 56); AT(tn_comm_place, job, 64);
SIZED(tn_comm_library, 580, 4); AT(tn_comm_library, name, 4); AT(tn_comm_library, version, 36);
AT(tn_comm_library, path, 68);
SIZED(tn_comm_position, 80, 8); AT(tn_comm_position, inside, 4); AT(tn_comm_position, number, 8);
AT(tn_comm_position, name, 16);
ITEM(tn_communicator, 176, 8); AT(tn_communicator, families, 40); AT(tn_communicator, identity_bytes, 48);
AT(tn_communicator, identify, 56); AT(tn_communicator, open, 64); AT(tn_communicator, close, 72);
AT(tn_communicator, run, 80); AT(tn_communicator, status, 88); AT(tn_communicator, abort, 96);
AT(tn_communicator, capturable, 104); AT(tn_communicator, await, 112); AT(tn_communicator, suits, 120);
AT(tn_communicator, library, 128); AT(tn_communicator, memory_new, 136);
AT(tn_communicator, memory_delete, 144); AT(tn_communicator, attach, 152); AT(tn_communicator, detach, 160);
AT(tn_communicator, position, 168);

/* tenon/plugin/cuda.h */
PLAIN(tn_cuda_grid, 28, 4); AT(tn_cuda_grid, blocks, 0); AT(tn_cuda_grid, threads, 12);
AT(tn_cuda_grid, shared_bytes, 24);
SIZED(tn_cuda, 80, 8); AT(tn_cuda, arch, 4); AT(tn_cuda, context, 8); AT(tn_cuda, stream, 16);
AT(tn_cuda, blas, 24); AT(tn_cuda, device, 32); AT(tn_cuda, compile, 40); AT(tn_cuda, release, 48);
AT(tn_cuda, launch, 56); AT(tn_cuda, stream_of, 64); AT(tn_cuda, driver, 72);

/* tenon/plugin/kernel.h */
PLAIN(tn_match_node, 24, 8); AT(tn_match_node, node, 0); AT(tn_match_node, in, 8);
AT(tn_match_node, first_out, 16);
SIZED(tn_match, 64, 8); AT(tn_match, n_in, 4); AT(tn_match, n_out, 8); AT(tn_match, n_nodes, 12);
AT(tn_match, in, 16); AT(tn_match, out, 24); AT(tn_match, out_number, 32); AT(tn_match, nodes, 40);
AT(tn_match, constant, 48); AT(tn_match, constant_node, 56);
SIZED(tn_device_properties, 280, 8); AT(tn_device_properties, host_addressable, 4);
AT(tn_device_properties, threads, 8); AT(tn_device_properties, arch, 12);
AT(tn_device_properties, memory_bytes, 16); AT(tn_device_properties, name, 24);
AT(tn_device_properties, free_bytes, 88); AT(tn_device_properties, cache_bytes, 96);
AT(tn_device_properties, bytes_per_s, 104); AT(tn_device_properties, vector_flops_per_s, 112);
AT(tn_device_properties, matrix_flops_per_s, 120); AT(tn_device_properties, launch_s, 248);
AT(tn_device_properties, processors, 256); AT(tn_device_properties, details, 264);
AT(tn_device_properties, link_bytes_per_s, 272);
PLAIN(tn_operand_layout, 36, 4); AT(tn_operand_layout, rule, 0); AT(tn_operand_layout, same_as, 4);
AT(tn_operand_layout, layout, 8);
SIZED(tn_variant, 96, 8); AT(tn_variant, id, 4); AT(tn_variant, name, 8); AT(tn_variant, in, 16);
AT(tn_variant, out, 24); AT(tn_variant, workspace_bytes, 32); AT(tn_variant, prepared_bytes, 40);
AT(tn_variant, n_inplace, 48); AT(tn_variant, inplace, 56); AT(tn_variant, cost_s, 64);
AT(tn_variant, deterministic, 72); AT(tn_variant, capturable, 76); AT(tn_variant, folded_bytes, 80);
AT(tn_variant, plain_sums, 88);
HANDLE(tn_query, 48, 8); AT(tn_query, match, 24); AT(tn_query, device, 32); AT(tn_query, backend, 40);
HANDLE(tn_prepare, 88, 8); AT(tn_prepare, match, 24); AT(tn_prepare, device, 32);
AT(tn_prepare, in_layout, 40); AT(tn_prepare, out_layout, 48); AT(tn_prepare, variant, 56);
AT(tn_prepare, native, 64); AT(tn_prepare, backend, 72); AT(tn_prepare, use, 80);
PLAIN(tn_view, 112, 8); AT(tn_view, type, 0); AT(tn_view, layout, 72); AT(tn_view, data, 104);
HANDLE(tn_launch, 112, 8); AT(tn_launch, n_in, 20); AT(tn_launch, n_out, 24); AT(tn_launch, in, 32);
AT(tn_launch, out, 40); AT(tn_launch, prepared, 48); AT(tn_launch, workspace, 56);
AT(tn_launch, workspace_bytes, 64); AT(tn_launch, stream, 72); AT(tn_launch, name, 80);
AT(tn_launch, folded, 88); AT(tn_launch, folded_bytes, 96); AT(tn_launch, cost_s, 104);
ITEM(tn_kernel, 96, 8); AT(tn_kernel, family, 40); AT(tn_kernel, pattern, 48); AT(tn_kernel, query, 56);
AT(tn_kernel, prepare, 64); AT(tn_kernel, release, 72); AT(tn_kernel, launch, 80); AT(tn_kernel, fold, 88);

/* tenon/plugin/layer.h */
ITEM(tn_layer_kind, 120, 8); AT(tn_layer_kind, role, 40); AT(tn_layer_kind, min_in, 44);
AT(tn_layer_kind, max_in, 48); AT(tn_layer_kind, build, 56); AT(tn_layer_kind, of_mean, 64);
AT(tn_layer_kind, falls, 68); AT(tn_layer_kind, types, 72); AT(tn_layer_kind, example, 80);
AT(tn_layer_kind, of_sums, 88); AT(tn_layer_kind, of_rows, 96); AT(tn_layer_kind, formula, 104);
AT(tn_layer_kind, inputs, 112);

/* tenon/plugin/observer.h */
PLAIN(tn_metric, 16, 8); AT(tn_metric, name, 0); AT(tn_metric, value, 8);
PLAIN(tn_histogram, 72, 8); AT(tn_histogram, name, 0); AT(tn_histogram, n, 8); AT(tn_histogram, min, 16);
AT(tn_histogram, max, 24); AT(tn_histogram, sum, 32); AT(tn_histogram, squares, 40);
AT(tn_histogram, n_buckets, 48); AT(tn_histogram, limits, 56); AT(tn_histogram, counts, 64);
PLAIN(tn_media, 40, 8); AT(tn_media, kind, 0); AT(tn_media, width, 4); AT(tn_media, height, 8);
AT(tn_media, name, 16); AT(tn_media, data, 24); AT(tn_media, bytes, 32);
SIZED(tn_run_info, 232, 8); AT(tn_run_info, name, 8); AT(tn_run_info, folder, 16);
AT(tn_run_info, epochs, 24); AT(tn_run_info, steps, 32); AT(tn_run_info, steps_per_epoch, 40);
AT(tn_run_info, batch, 48); AT(tn_run_info, terminal, 56); AT(tn_run_info, terminal_columns, 60);
AT(tn_run_info, first_step, 64); AT(tn_run_info, epoch_ended, 72); AT(tn_run_info, quiet, 76);
AT(tn_run_info, backend, 80); AT(tn_run_info, extends, 88); AT(tn_run_info, libraries, 96);
AT(tn_run_info, passed_over, 104); AT(tn_run_info, device, 112); AT(tn_run_info, precision, 120);
AT(tn_run_info, devices, 128); AT(tn_run_info, threads, 132); AT(tn_run_info, source, 136);
AT(tn_run_info, samples, 144); AT(tn_run_info, valid_samples, 152); AT(tn_run_info, classes, 160);
AT(tn_run_info, parameters, 168); AT(tn_run_info, planned_bytes, 176); AT(tn_run_info, resumed, 184);
AT(tn_run_info, replayed, 188); AT(tn_run_info, remarks, 192); AT(tn_run_info, frozen, 200);
AT(tn_run_info, use, 208); AT(tn_run_info, better_policy, 216); AT(tn_run_info, data_batch, 224);
SIZED(tn_event, 176, 8); AT(tn_event, kind, 4); AT(tn_event, epoch, 8); AT(tn_event, step, 16);
AT(tn_event, step_in_epoch, 24); AT(tn_event, steps_in_epoch, 32); AT(tn_event, seconds, 40);
AT(tn_event, samples_per_s, 48); AT(tn_event, lr, 56); AT(tn_event, n_train, 64); AT(tn_event, n_valid, 68);
AT(tn_event, train, 72); AT(tn_event, valid, 80); AT(tn_event, text, 88); AT(tn_event, skipped, 96);
AT(tn_event, loss_scale, 104); AT(tn_event, table, 112); AT(tn_event, n_watched, 120);
AT(tn_event, n_histograms, 124); AT(tn_event, watched, 128); AT(tn_event, histograms, 136);
AT(tn_event, sparsity, 144); AT(tn_event, samples, 152); AT(tn_event, n_media, 160); AT(tn_event, media, 168);
ITEM(tn_observer, 72, 8); AT(tn_observer, always, 40); AT(tn_observer, prints, 44); AT(tn_observer, open, 48);
AT(tn_observer, event, 56); AT(tn_observer, close, 64);

/* tenon/plugin/op.h */
SIZED(tn_node, 48, 8); AT(tn_node, n_in, 4); AT(tn_node, n_out, 8); AT(tn_node, op, 16);
AT(tn_node, attributes, 24); AT(tn_node, in, 32); AT(tn_node, out, 40);
HANDLE(tn_infer, 72, 8); AT(tn_infer, node, 24);
SIZED(tn_cost, 24, 8); AT(tn_cost, flops, 8); AT(tn_cost, bytes, 16);
ITEM(tn_op, 128, 8); AT(tn_op, schema, 40); AT(tn_op, flags, 48); AT(tn_op, op_class, 52);
AT(tn_op, infer, 56); AT(tn_op, decompose, 64); AT(tn_op, grad, 72); AT(tn_op, cost, 80);
AT(tn_op, formula, 88); AT(tn_op, domain, 96); AT(tn_op, notes, 104); AT(tn_op, gradient, 112);
AT(tn_op, aliases, 120);

/* tenon/plugin/optimizer.h */
PLAIN(tn_optimizer_state, 32, 8); AT(tn_optimizer_state, name, 0); AT(tn_optimizer_state, when, 8);
AT(tn_optimizer_state, scalar, 16); AT(tn_optimizer_state, values, 20);
AT(tn_optimizer_state, in_formula, 24);
ITEM(tn_optimizer, 88, 8); AT(tn_optimizer, granularity, 40); AT(tn_optimizer, update, 48);
AT(tn_optimizer, formula, 56); AT(tn_optimizer, states, 64); AT(tn_optimizer, check, 72);
AT(tn_optimizer, takes, 80);

/* tenon/plugin/plugin.h */
SIZED(tn_item, 40, 8); AT(tn_item, kind, 4); AT(tn_item, name, 8); AT(tn_item, doc, 16);
AT(tn_item, options, 24); AT(tn_item, option_stride, 32); AT(tn_item, options_bytes, 36);
SIZED(tn_plugin, 56, 8); AT(tn_plugin, major, 4); AT(tn_plugin, minor, 6); AT(tn_plugin, requires, 8);
AT(tn_plugin, name, 16); AT(tn_plugin, version, 24); AT(tn_plugin, licence, 32); AT(tn_plugin, build, 40);
AT(tn_plugin, items, 48);

/* tenon/plugin/precision.h */
SIZED(tn_precision_site, 32, 8); AT(tn_precision_site, op, 8); AT(tn_precision_site, op_class, 16);
AT(tn_precision_site, is_result, 20); AT(tn_precision_site, index, 24); AT(tn_precision_site, dtype, 28);
ITEM(tn_precision, 64, 8); AT(tn_precision, decide, 40); AT(tn_precision, scale, 48);
AT(tn_precision, update, 56);

/* tenon/plugin/schedule.h */
PLAIN(tn_schedule_point, 24, 8); AT(tn_schedule_point, step, 0); AT(tn_schedule_point, epochs, 8);
AT(tn_schedule_point, samples, 16);
SIZED(tn_schedule_at, 80, 8); AT(tn_schedule_at, step, 8); AT(tn_schedule_at, steps, 16);
AT(tn_schedule_at, steps_per_epoch, 24); AT(tn_schedule_at, warmup, 32); AT(tn_schedule_at, state, 40);
AT(tn_schedule_at, samples, 48); AT(tn_schedule_at, points, 56); AT(tn_schedule_at, n_points, 64);
AT(tn_schedule_at, origin, 72);
SIZED(tn_schedule_result, 24, 8); AT(tn_schedule_result, larger_is_better, 4);
AT(tn_schedule_result, epoch, 8); AT(tn_schedule_result, value, 16);
ITEM(tn_schedule, 72, 8); AT(tn_schedule, factor, 40); AT(tn_schedule, check, 48); AT(tn_schedule, epoch, 56);
AT(tn_schedule, example, 64);

/* tenon/plugin/source.h */
SIZED(tn_field, 128, 8); AT(tn_field, name, 8); AT(tn_field, type, 16); AT(tn_field, role, 88);
AT(tn_field, classes, 96); AT(tn_field, class_names, 104); AT(tn_field, scale, 112); AT(tn_field, shift, 120);
SIZED(tn_description, 48, 8); AT(tn_description, count, 8); AT(tn_description, n_fields, 16);
AT(tn_description, fields, 24); AT(tn_description, epoch, 32); AT(tn_description, keep, 40);
PLAIN(tn_scratch, 16, 8); AT(tn_scratch, memory, 0); AT(tn_scratch, size, 8);
HANDLE(tn_sample, 56, 8); AT(tn_sample, index, 24); AT(tn_sample, key, 32); AT(tn_sample, scratch, 40);
AT(tn_sample, stopping, 48);
ITEM(tn_source, 168, 8); AT(tn_source, open, 40); AT(tn_source, close, 48); AT(tn_source, describe, 56);
AT(tn_source, read, 64); AT(tn_source, next, 72); AT(tn_source, tell, 80); AT(tn_source, seek, 88);
AT(tn_source, open_files, 96); AT(tn_source, name, 104); AT(tn_source, class_of, 112);
AT(tn_source, types, 120); AT(tn_source, example, 128); AT(tn_source, learnt, 136);
AT(tn_source, weight_of, 144); AT(tn_source, open_pictures, 152); AT(tn_source, ahead, 160);
SIZED(tn_part, 24, 8); AT(tn_part, source, 8); AT(tn_part, self, 16);
SIZED(tn_part_use, 40, 8); AT(tn_part_use, split, 4); AT(tn_part_use, seed, 8); AT(tn_part_use, learnt, 16);
AT(tn_part_use, paths, 24); AT(tn_part_use, n_paths, 32);

/* tenon/plugin/storage.h */
PLAIN(tn_storage_axis, 32, 8); AT(tn_storage_axis, dim, 0); AT(tn_storage_axis, extent, 8);
AT(tn_storage_axis, stride, 16); AT(tn_storage_axis, scale, 24);
PLAIN(tn_storage, 400, 8); AT(tn_storage, n, 0); AT(tn_storage, padded, 4); AT(tn_storage, count, 8);
AT(tn_storage, axis, 16);

/* tenon/plugin/transform.h */
HANDLE(tn_transform_call, 80, 8); AT(tn_transform_call, n, 20); AT(tn_transform_call, in_type, 24);
AT(tn_transform_call, out_type, 32); AT(tn_transform_call, in, 40); AT(tn_transform_call, out, 48);
AT(tn_transform_call, index, 56); AT(tn_transform_call, key, 64); AT(tn_transform_call, scratch, 72);
ITEM(tn_transform, 104, 8); AT(tn_transform, granularity, 40); AT(tn_transform, training_only, 44);
AT(tn_transform, infer, 48); AT(tn_transform, apply, 56); AT(tn_transform, build, 64);
AT(tn_transform, pointwise, 72); AT(tn_transform, draws, 76); AT(tn_transform, draw, 80);
AT(tn_transform, types, 88); AT(tn_transform, example, 96);

/* tenon/random.h */
PLAIN(tn_philox, 16, 4); AT(tn_philox, v, 0);
PLAIN(tn_rng, 48, 8); AT(tn_rng, key, 0); AT(tn_rng, hi, 8); AT(tn_rng, lo, 16); AT(tn_rng, word, 24);
AT(tn_rng, used, 40);

/* tenon/run.h */
SIZED(tn_run_options, 96, 8); AT(tn_run_options, set, 8); AT(tn_run_options, n_set, 16);
AT(tn_run_options, output, 24); AT(tn_run_options, resume, 32); AT(tn_run_options, weights, 40);
AT(tn_run_options, terminal, 48); AT(tn_run_options, quiet, 52); AT(tn_run_options, progress, 56);
AT(tn_run_options, command, 64); AT(tn_run_options, n_command, 72); AT(tn_run_options, trace, 80);
AT(tn_run_options, untrusted, 88);
SIZED(tn_predict_options, 56, 8); AT(tn_predict_options, inputs, 8); AT(tn_predict_options, n_inputs, 16);
AT(tn_predict_options, output, 24); AT(tn_predict_options, top, 32); AT(tn_predict_options, show, 40);
AT(tn_predict_options, threshold, 48);
SIZED(tn_generate_options, 96, 8); AT(tn_generate_options, prompt, 8);
AT(tn_generate_options, prompt_bytes, 16); AT(tn_generate_options, tokens, 24);
AT(tn_generate_options, n_tokens, 32); AT(tn_generate_options, count, 40);
AT(tn_generate_options, temperature, 48); AT(tn_generate_options, top_p, 56);
AT(tn_generate_options, top_k, 64); AT(tn_generate_options, seed, 72); AT(tn_generate_options, write, 80);
AT(tn_generate_options, user, 88);
SIZED(tn_plan_options, 40, 8); AT(tn_plan_options, dump_after, 8); AT(tn_plan_options, device, 16);
AT(tn_plan_options, ranks, 24); AT(tn_plan_options, mode, 28); AT(tn_plan_options, batch, 32);
SIZED(tn_sweep_options, 24, 8); AT(tn_sweep_options, set, 8); AT(tn_sweep_options, n_set, 16);
SIZED(tn_bench_options, 48, 8); AT(tn_bench_options, mode, 4); AT(tn_bench_options, batch, 8);
AT(tn_bench_options, steps, 16); AT(tn_bench_options, rounds, 20); AT(tn_bench_options, warmup, 24);
AT(tn_bench_options, launches, 28); AT(tn_bench_options, ranks, 32); AT(tn_bench_options, device, 40);
SIZED(tn_data_options, 16, 8); AT(tn_data_options, samples, 4); AT(tn_data_options, picture, 8);
SIZED(tn_find_lr_options, 40, 8); AT(tn_find_lr_options, steps, 4); AT(tn_find_lr_options, from, 8);
AT(tn_find_lr_options, to, 16); AT(tn_find_lr_options, progress, 24); AT(tn_find_lr_options, user, 32);
SIZED(tn_compare_options, 24, 8); AT(tn_compare_options, steps, 4); AT(tn_compare_options, launches, 8);
AT(tn_compare_options, file, 16);

/* tenon/session.h */
SIZED(tn_session_options, 48, 8); AT(tn_session_options, train, 4); AT(tn_session_options, eval, 8);
AT(tn_session_options, infer, 12); AT(tn_session_options, batch, 16); AT(tn_session_options, steps, 24);
AT(tn_session_options, steps_per_epoch, 32); AT(tn_session_options, weights, 40);
SIZED(tn_session_field, 88, 8); AT(tn_session_field, role, 4); AT(tn_session_field, name, 8);
AT(tn_session_field, type, 16);

/* tenon/tensor.h */
SIZED(tn_device_info, 72, 8); AT(tn_device_info, index, 4); AT(tn_device_info, backend, 8);
AT(tn_device_info, name, 16); AT(tn_device_info, host_addressable, 24); AT(tn_device_info, threads, 28);
AT(tn_device_info, memory_bytes, 32); AT(tn_device_info, bytes, 40); AT(tn_device_info, peak_bytes, 48);
AT(tn_device_info, programs, 56); AT(tn_device_info, compiled, 64);

/* tenon/tokenizer.h */
PLAIN(tn_token_ids, 24, 8); AT(tn_token_ids, v, 0); AT(tn_token_ids, n, 8); AT(tn_token_ids, room, 16);
PLAIN(tn_token_text, 16, 8); AT(tn_token_text, text, 0); AT(tn_token_text, bytes, 8);

#endif
