/* tensors.c: tensors and single ops, without a model.
 *
 *     cc tensors.c $(pkg-config --cflags --libs tenon) -o tensors && ./tensors */
#include <stdio.h>
#include <tenon/tensor.h>

static int fail(const void *handle) {
  fprintf(stderr, "%s\n", tn_error_text(handle));
  return 1;
}

int main(void) {
  float pixels[2 * 2 * 3] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}, kernel[3] = {0.299f, 0.587f, 0.114f},
                       gray[4];
  const tn_type nhwc = {TN_F32, 4, {1, 2, 2, 3}}, weight = {TN_F32, 4, {1, 3, 1, 1}};
  tn_context *context;
  tn_device *device;
  tn_tensor *x, *nchw, *w, *y = NULL, *dy, *gradients[2] = {NULL, NULL};

  if (tn_context_open(NULL, &context) != TN_OK) return fail(context);
  if (tn_device_open(context, "auto", 0, "threads = 2", &device) != TN_OK) return fail(context);

  /* Tensors over memory of this program; a permuted view presents NHWC as the NCHW of the ops. */
  if (tn_tensor_wrap(device, &nhwc, pixels, &x) != TN_OK) return fail(device);
  if (tn_tensor_permute(x, (const int32_t[]){0, 3, 1, 2}, &nchw) != TN_OK) return fail(device);
  if (tn_tensor_wrap(device, &weight, kernel, &w) != TN_OK) return fail(device);

  /* An op in text form: the result is a new tensor. */
  if (tn_apply(device, "conv2d(stride=[1, 1])", (tn_tensor *[]){nchw, w}, 2, &y, 1) != TN_OK)
    return fail(device);
  if (tn_tensor_read(y, gray, sizeof gray) != TN_OK) return fail(device);
  printf("gray: %g %g %g %g\n", gray[0], gray[1], gray[2], gray[3]);

  /* The same op, argument by argument, ended with its gradient: d sum(y) / d kernel. */
  if (tn_tensor_new(device, tn_tensor_type(y), &dy) != TN_OK) return fail(device);
  if (tn_tensor_fill(dy, 1) != TN_OK) return fail(device);
  tn_call *call = tn_call_begin(device, "conv2d");
  tn_call_operand(call, nchw);
  tn_call_operand(call, w);
  tn_call_set_ints(call, "stride", 2, (const int64_t[]){1, 1});
  if (tn_call_end_gradient(call, &dy, 1, (const int32_t[]){0, 1}, gradients, 2) != TN_OK) return fail(device);
  if (tn_tensor_read(gradients[1], kernel, sizeof kernel) != TN_OK) return fail(device);
  printf("gradient of the kernel: %g %g %g\n", kernel[0], kernel[1], kernel[2]);

  tn_tensor *all[] = {x, nchw, w, y, dy, gradients[1]};
  for (int i = 0; i < 6; i++) tn_tensor_delete(all[i]);
  tn_device_close(device);
  tn_context_close(context);
  return 0;
}
