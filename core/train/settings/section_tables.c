/* core/train/settings/section_tables.c: the keys of the sections that are Tenon's own. */
#include "core/train/settings/section_tables.h"

static const tn_option run_rows[] = {
    TN_OPT(tn_run_section, name, TN_OPT_TEXT, "run", NULL, "name of the run and of its folder"),
    TN_OPT(tn_run_section, seed, TN_OPT_INT, "0", ">= 0", "key of all randomness"),
    TN_OPT(tn_run_section, epochs, TN_OPT_INT, "1", ">= 0", "passes over the training data"),
    TN_OPT(tn_run_section, max_steps, TN_OPT_INT, "0", ">= 0", "stop after so many steps; 0: no limit"),
    TN_OPT(tn_run_section, max_time, TN_OPT_DURATION, "0", ">= 0",
           "stop after so long (90s, 2h); 0: no limit"),
    TN_OPT(tn_run_section, fast_dev_run, TN_OPT_FLAG, "no", NULL,
           "one training and one validation step, nothing saved"),
    TN_OPT(tn_run_section, threads, TN_OPT_INT, "0", ">= 0",
           "threads for kernels on the host; 0: one per processor"),
    TN_OPT(
        tn_run_section, pin, TN_OPT_TEXT, "no", NULL,
        "binds each of these threads to a processor: no, yes, or processors in their order, such as 0-3,8"),
    TN_OPT(tn_run_section, memory_limit, TN_OPT_SIZE, "0", ">= 0",
           "most memory that the device may be asked for; 0: no limit"),
    TN_OPT(tn_run_section, output, TN_OPT_TEXT, "runs", NULL,
           "folder for run folders; empty: nothing is written"),
    TN_OPT(tn_run_section, observers, TN_OPT_TEXT, "", NULL,
           "observers beside or instead of the usual ones: jsonl, -progress"),
    TN_OPT(tn_run_section, save_every, TN_OPT_INT, "0", ">= 0", "save a checkpoint every so many steps, too"),
    TN_OPT(tn_run_section, best, TN_OPT_TEXT, "", NULL,
           "metric that chooses the best checkpoint; empty: the first metric, or the loss"),
    TN_OPT_END};
static const tn_option backend_rows[] = {
    TN_OPT(tn_backend_section, use, TN_OPT_TEXT, TN_DEFAULT_BACKEND, NULL,
           "backends in order of preference; the first that can be used is"),
    TN_OPT(tn_backend_section, fallback, TN_OPT_ENUM, "warn", "error|warn|allow",
           "what to do with ops that the device lacks"),
    TN_OPT(tn_backend_section, capture, TN_OPT_FLAG, "yes", NULL,
           "record the launches of a step once and replay them, where the device can"),
    TN_OPT(
        tn_backend_section, autotune, TN_OPT_ENUM, "yes", "yes|cached|no",
        "choose between ways of doing an op by measuring them once, by what was measured, or by estimates"),
    TN_OPT(tn_backend_section, tune_folder, TN_OPT_TEXT, "", NULL,
           "where measurements are kept; empty: the user's cache folder"),
    TN_OPT_END};
static const tn_option data_rows[] = {
    TN_OPT(tn_data_section, source, TN_OPT_TEXT, NULL, NULL, "where samples come from"),
    TN_OPT(tn_data_section, batch, TN_OPT_INT, "32", ">= 1", "samples in a step"),
    TN_OPT(tn_data_section, workers, TN_OPT_INT, "2", "[0, 256]", "threads that read and transform; 0: none"),
    TN_OPT(tn_data_section, prefetch, TN_OPT_INT, "2", "[1, 64]", "batches read ahead"),
    TN_OPT(tn_data_section, epoch, TN_OPT_INT, "0", ">= 0", "samples in an epoch; 0: all there are"),
    TN_OPT(tn_data_section, transforms, TN_OPT_TEXT, "", NULL,
           "what happens to a sample before it joins the batch"),
    TN_OPT(tn_data_section, cache, TN_OPT_TEXT, "auto", NULL,
           "memory for decoded samples, so that later epochs need not read them: off, a size, or auto, a "
           "quarter of what is available"),
    TN_OPT(tn_data_section, shuffle, TN_OPT_FLAG, "yes", NULL, "another order in every epoch (training)"),
    TN_OPT(tn_data_section, last, TN_OPT_ENUM, "drop", "drop|pad",
           "the short last batch of training: leave it out, or fill it up with samples of weight 0"),
    TN_OPT_END};
static const tn_option optimizer_rows[] = {
    TN_OPT(tn_optimizer_section, type, TN_OPT_TEXT, TN_DEFAULT_OPTIMIZER, NULL, "which optimizer"),
    TN_OPT(tn_optimizer_section, clip, TN_OPT_FLOAT, "0", ">= 0",
           "greatest norm of the whole gradient; 0: no limit"),
    TN_OPT(tn_optimizer_section, accumulate, TN_OPT_INT, "1", "[1, 65536]",
           "batches whose gradients are summed before an update; all of them are held at once"),
    TN_OPT(tn_optimizer_section, check_finite, TN_OPT_FLAG, "no", NULL,
           "leave out updates whose gradients are not finite"),
    TN_OPT_END};
static const tn_option schedule_rows[] = {
    TN_OPT(tn_schedule_section, type, TN_OPT_TEXT, TN_DEFAULT_SCHEDULE, NULL, "which schedule"),
    TN_OPT(tn_schedule_section, warmup, TN_OPT_INT, "0", ">= 0", "steps of linear warm-up"), TN_OPT_END};
static const tn_option distributed_rows[] = {
    TN_OPT(tn_distributed_section, communicator, TN_OPT_TEXT, "", NULL,
           "who carries sums between devices; empty: one that serves the backend"),
    TN_OPT(tn_distributed_section, devices, TN_OPT_TEXT, "1", NULL,
           "how many devices train together, or all"),
    TN_OPT(tn_distributed_section, timeout, TN_OPT_DURATION, "300s", "> 0",
           "how long to wait for a rank before it counts as lost"),
    TN_OPT(tn_distributed_section, bucket, TN_OPT_SIZE, "25MiB", ">= 4",
           "gradients are summed over devices in pieces of this size, each as soon as it is complete"),
    TN_OPT_END};
static const tn_option weights_rows[] = {
    TN_OPT(tn_weights_section, file, TN_OPT_PATH, "", NULL, "safetensors file to start from"),
    TN_OPT(tn_weights_section, prefix, TN_OPT_TEXT, "", NULL,
           "what stands in front of every name in the file"),
    TN_OPT(tn_weights_section, ignore, TN_OPT_TEXT, "*.num_batches_tracked", NULL,
           "patterns of names that may be missing or left over"),
    TN_OPT_END};
static const tn_option precision_rows[] = {
    TN_OPT(tn_policy_section, policy, TN_OPT_TEXT, TN_DEFAULT_POLICY, NULL, "in which types ops work"),
    TN_OPT_END};
static const tn_option plugins_rows[] = {
    TN_OPT(tn_plugins_section, load, TN_OPT_TEXT, "", NULL,
           "plugin files, relative to this one; `?` behind a name: may be absent"),
    TN_OPT_END};
static const tn_option model_rows[] = {
    TN_OPT(tn_model_section, inputs, TN_OPT_TEXT, NULL, NULL,
           "fields that the model takes: image: f32[3, 224, 224]"),
    TN_OPT(tn_model_section, targets, TN_OPT_TEXT, "label: i32[]", NULL,
           "fields that losses and metrics take"),
    TN_OPT(tn_model_section, layers, TN_OPT_TEXT, NULL, NULL, "the model, a layer a line"),
    TN_OPT(tn_model_section, loss, TN_OPT_TEXT, "", NULL,
           "what training minimizes; weight=FACTOR scales one of several"),
    TN_OPT(tn_model_section, metrics, TN_OPT_TEXT, "", NULL, "what is reported beside the loss"),
    TN_OPT_END};
static const tn_option block_rows[] = {
    TN_OPT(tn_block_section, args, TN_OPT_TEXT, "", NULL, "names that a use gives values, or NAME=default"),
    TN_OPT(tn_block_section, inputs, TN_OPT_TEXT, "", NULL, "names of several inputs; one is called `in`"),
    TN_OPT(tn_block_section, layers, TN_OPT_TEXT, NULL, NULL, "the block, a layer a line"),
    TN_OPT(tn_block_section, outputs, TN_OPT_TEXT, "", NULL,
           "names of the results; empty: the last line's value"),
    TN_OPT_END};
static const tn_option match_rows[] = {
    TN_OPT(tn_match_section, match, TN_OPT_TEXT, NULL, NULL, "patterns of parameter names"), TN_OPT_END};

#define TABLE(name, S, rows, doc)                                                                            \
  const tn_item tn_table_##name = {                                                                          \
      (uint32_t)sizeof(tn_item), 0, #name, doc, rows, (uint32_t)sizeof(tn_option), (uint32_t)sizeof(S)}
TABLE(run, tn_run_section, run_rows, "the run as a whole");
TABLE(backend, tn_backend_section, backend_rows, "where it runs");
TABLE(data, tn_data_section, data_rows, "samples; [data.train] and [data.valid] override");
TABLE(optimizer, tn_optimizer_section, optimizer_rows,
      "how parameters move, with the optimizer's own options");
TABLE(schedule, tn_schedule_section, schedule_rows,
      "the learning rate over time, with the schedule's own options");
TABLE(distributed, tn_distributed_section, distributed_rows, "training on several devices at once");
TABLE(weights, tn_weights_section, weights_rows, "parameters to start from");
TABLE(precision, tn_policy_section, precision_rows, "element types, with the policy's own options");
TABLE(plugins, tn_plugins_section, plugins_rows, "plugins beside those that are installed");
TABLE(model, tn_model_section, model_rows, "the network, its losses and metrics");
TABLE(block, tn_block_section, block_rows, "[block NAME]: lines that a model uses as it uses a layer");
TABLE(group, tn_match_section, match_rows, "[group.NAME]: options of the optimizer for some parameters");
const tn_item *const tn_settings_tables[] = {&tn_table_run,
                                             &tn_table_model,
                                             &tn_table_block,
                                             &tn_table_data,
                                             &tn_table_optimizer,
                                             &tn_table_group,
                                             &tn_table_schedule,
                                             &tn_table_precision,
                                             &tn_table_backend,
                                             &tn_table_distributed,
                                             &tn_table_weights,
                                             &tn_table_plugins,
                                             NULL};
