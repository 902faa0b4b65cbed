/* predict.c: the classes of a picture, by the weights of a run.
 *
 *     cc predict.c $(pkg-config --cflags --libs tenon) -lm -o predict
 *     ./predict runs/photos/config.ini runs/photos cat.jpg */
#include <stdio.h>
#include <tenon/run.h>

static int fail(const void *handle) {
  fprintf(stderr, "%s\n", tn_error_text(handle));
  return 1;
}

int main(int argc, char **argv) {
  tn_context *context;
  tn_run *run;
  char *result;
  if (argc != 4) return 2;
  const tn_run_options options = {.struct_size = sizeof options, .weights = argv[2]};
  const char *const pictures[] = {argv[3]};
  const tn_predict_options predict = {
      .struct_size = sizeof predict, .inputs = pictures, .n_inputs = 1, .top = 3};
  if (tn_context_open(NULL, &context) != TN_OK) return fail(context);
  if (tn_run_open(context, argv[1], &options, &run) != TN_OK) return fail(context);
  if (tn_run_predict(run, &predict, &result) != TN_OK) return fail(run);
  printf("%s\n", result);
  tn_string_free(run, result);
  tn_run_close(run);
  tn_context_close(context);
  return 0;
}
