/* core/run/section_tables.c: the keys of the sections that Tenon itself defines. */
#include "core/run/section_tables.h"

static const tn_option run_rows[] = {
    TN_OPT(tn_run_section, name, TN_OPT_TEXT, "run", NULL, "name of the run, and of its folder in `output`"),
    TN_OPT(tn_run_section, seed, TN_OPT_INT, "0", ">= 0", "seed of all random streams"),
    TN_OPT(tn_run_section, epochs, TN_OPT_INT, "1", ">= 0", "passes over the training data"),
    TN_OPT(tn_run_section, max_steps, TN_OPT_INT, "0", ">= 0", "stop after so many steps; 0: no limit"),
    TN_OPT(
        tn_run_section, pause_after, TN_OPT_INT, "0", ">= 0",
        "end the run after this epoch, with a checkpoint that --resume goes on from; schedules count all of "
        "`epochs`; 0: no pause"),
    TN_OPT(tn_run_section, max_time, TN_OPT_DURATION, "0", ">= 0",
           "stop after so long (90s, 2h); 0: no limit"),
    TN_OPT(tn_run_section, fast_dev_run, TN_OPT_FLAG, "no", NULL,
           "one training and one validation step, nothing saved"),
    TN_OPT(tn_run_section, limit_train, TN_OPT_TEXT, "1.0", NULL,
           "for quick tries: train on so many batches an epoch (10), or on a part of it (0.1); with shuffle, "
           "on others each time; schedules count the shorter epochs"),
    TN_OPT(tn_run_section, limit_valid, TN_OPT_TEXT, "1.0", NULL,
           "for quick tries: validate on so many batches (10), or on a part of the data (0.1), spread over "
           "the source, the same each time; eval takes all"),
    TN_OPT(tn_run_section, overfit, TN_OPT_INT, "0", ">= 0",
           "a check that the model can learn: train and validate on the same so many batches of the training "
           "data, with the transforms of validation, without shuffle and balance; 0: no check"),
    TN_OPT(tn_run_section, threads, TN_OPT_INT, "0", "[0, 65536]",
           "threads for kernels on the host; 0: one per processor"),
    TN_OPT(
        tn_run_section, pin, TN_OPT_TEXT, "no", NULL,
        "binds each of these threads to a processor: no, yes, or processors in their order, such as 0-3,8"),
    TN_OPT(tn_run_section, deterministic, TN_OPT_FLAG, "no", NULL,
           "only kernels that give the same bits in every run; nothing is measured to choose between them"),
    TN_OPT(tn_run_section, memory_limit, TN_OPT_SIZE, "0", ">= 0", "limit of the device memory; 0: no limit"),
    TN_OPT(
        tn_run_section, offload, TN_OPT_ENUM, "auto", "auto|no",
        "whether values and weights may wait in memory of the host; auto: under memory_limit, values that "
        "backward reads, where the rate of the device's link is known and that takes less time than "
        "computing them again; and weights of predictions, and frozen ones, that memory_limit or the device "
        "has no room for, which are copied to it in each run"),
    TN_OPT(
        tn_run_section, offload_folder, TN_OPT_TEXT, "", NULL,
        "a folder on a fast disk for values, weights and optimizer state that would wait in memory of the "
        "host: they are in a file there without a name, which ends with the run. Its copies are not part of "
        "captured steps. Empty: memory of the host"),
    TN_OPT(tn_run_section, steps_per_launch, TN_OPT_TEXT, "auto", NULL,
           "steps that a device with capture replays in one launch: 1 .. 16, or auto, by the estimated time "
           "of a "
           "step"),
    TN_OPT(tn_run_section, chunk_logits, TN_OPT_TEXT, "auto", NULL,
           "computes a loss of many classes and its gradients by chunks of rows, so that the scores of all "
           "classes never lie in memory whole: no, yes, the most rows of a chunk, or auto, where that saves "
           "more than half of their memory"),
    TN_OPT(tn_run_section, output, TN_OPT_TEXT, "runs", NULL,
           "folder for run folders; empty: nothing is written"),
    TN_OPT(tn_run_section, observers, TN_OPT_TEXT, "", NULL,
           "observers to add, or to remove with a minus: jsonl, -progress"),
    TN_OPT(tn_run_section, report, TN_OPT_FLAG, "no", NULL,
           "keep report.html in the run folder current: at the end of each epoch, and every ten seconds"),
    TN_OPT(tn_run_section, save_every, TN_OPT_INT, "0", ">= 0", "also save a checkpoint every so many steps"),
    TN_OPT(tn_run_section, valid_every, TN_OPT_INT, "1", ">= 1",
           "validate at the end of every so many epochs, and of the last one; the others are not judged, and "
           "patience counts those that are"),
    TN_OPT(tn_run_section, keep_last, TN_OPT_INT, "0", ">= 0",
           "keep so many of the newest checkpoints as checkpoints/step-N, beside last and best"),
    TN_OPT(tn_run_section, keep_best, TN_OPT_INT, "0", ">= 0",
           "keep so many checkpoints of the best epochs as checkpoints/step-N"),
    TN_OPT(tn_run_section, keep_every, TN_OPT_TEXT, "", NULL,
           "keep a checkpoint as checkpoints/step-N every so often: 5 epochs, 1000 steps, or a training time "
           "such "
           "as 2h; empty: no more than keep_last and keep_best"),
    TN_OPT(
        tn_run_section, profile, TN_OPT_INT, "0", "[0, 100000]",
        "measure so many steps, launch by launch, from the third step of the run on, and write profile.json "
        "and trace.json to the run folder; these steps replay no captures; 0: none"),
    TN_OPT(
        tn_run_section, watch, TN_OPT_INT, "0", ">= 0",
        "every so many steps, show the norms of gradients and weights and the ratio of update to weight of "
        "each group of parameters; these steps are a program of their own; 0: never"),
    TN_OPT(tn_run_section, watch_groups, TN_OPT_TEXT, "blocks", NULL,
           "the groups of watch: blocks, by the first part of their names; parameters, each by itself; or "
           "patterns, with * for any part, each of which is a group: *.attn.*, *.mlp.*"),
    TN_OPT(tn_run_section, watch_histograms, TN_OPT_FLAG, "no", NULL,
           "also count gradients and weights by magnitude, for histograms of TensorBoard"),
    TN_OPT(
        tn_run_section, samples, TN_OPT_INT, "0", "[0, 256]",
        "at each validation, show the first so many samples of its data with what the model makes of them: "
        "pictures, classes, numbers, texts"),
    TN_OPT(tn_run_section, sample_fields, TN_OPT_TEXT, "", NULL,
           "the inputs, targets and outputs of the model that are shown; empty: all that can be"),
    TN_OPT(tn_run_section, sample_tokens, TN_OPT_INT, "32", ">= 0",
           "of a model that predicts the next token, how many tokens it appends to the first half of each "
           "sample, the most probable ones"),
    TN_OPT(tn_run_section, best, TN_OPT_TEXT, "", NULL,
           "metric that chooses the best checkpoint; empty: the first metric, or the loss"),
    TN_OPT(tn_run_section, best_mode, TN_OPT_ENUM, "auto", "auto|min|max",
           "whether it is best when small or large; auto: losses and perplexity small, other metrics large"),
    TN_OPT(tn_run_section, patience, TN_OPT_INT, "0", ">= 0",
           "early stopping: so many epochs in a row that are not better than the best end the run; 0: train "
           "all epochs"),
    TN_OPT(tn_run_section, target, TN_OPT_TEXT, "", NULL,
           "end the run when a loss or metric is as good as this at the end of an epoch: accuracy 0.94; "
           "empty: no "
           "target"),
    TN_OPT(tn_run_section, min_delta, TN_OPT_FLOAT, "0", ">= 0",
           "what counts as an improvement for patience: more than so much"),
    TN_OPT_END};
static const tn_option backend_rows[] = {
    TN_OPT(
        tn_backend_section, use, TN_OPT_TEXT, TN_DEFAULT_BACKEND, NULL,
        "backends in order of preference; the first one that is available is used; auto: the fastest first"),
    TN_OPT(
        tn_backend_section, fallback, TN_OPT_ENUM, "warn", "error|warn|allow",
        "ops without a kernel for the device: an error, or the fallback backend with or without a warning"),
    TN_OPT(tn_backend_section, capture, TN_OPT_FLAG, "yes", NULL,
           "record the launches of a step once and replay them, if the device supports it"),
    TN_OPT(tn_backend_section, autotune, TN_OPT_ENUM, "yes", "yes|cached|no",
           "choose kernel variants by measuring them once, by earlier measurements only, or by estimates"),
    TN_OPT(tn_backend_section, tune_folder, TN_OPT_TEXT, "", NULL,
           "folder of the measurements; empty: the user's cache folder"),
    TN_OPT(tn_backend_section, without, TN_OPT_TEXT, "", NULL,
           "kernels that are left out, by the names that `tenon plan` shows, separated by commas or lines: a "
           "fusion's step can be timed with it and with its parts"),
    TN_OPT_END};
static const tn_option data_rows[] = {
    TN_OPT(tn_data_section, source, TN_OPT_TEXT, NULL, NULL, "name of the source of the samples"),
    TN_OPT(tn_data_section, batch, TN_OPT_INT, "32", ">= 1",
           "samples in a step; auto: training takes the largest batch whose plan fits into the device's "
           "memory, or "
           "[run] memory_limit"),
    TN_OPT(tn_data_section, workers, TN_OPT_INT, "2", "[0, 256]",
           "threads that read and transform samples; 0: no threads"),
    TN_OPT(tn_data_section, prefetch, TN_OPT_INT, "2", "[1, 64]", "batches read ahead"),
    TN_OPT(tn_data_section, epoch, TN_OPT_INT, "0", ">= 0",
           "samples in an epoch; 0: all. Fewer than all: in a shuffled epoch others each time, else the same "
           "ones, drawn by the seed from all over the source"),
    TN_OPT(
        tn_data_section, fold, TN_OPT_TEXT, "", NULL,
        "K/N, as 2/5, for cross-validation: the samples of the training source are divided at random into N "
        "parts of equal size, the same in every run; validation reads part K, and training the others; "
        "empty: no division"),
    TN_OPT(tn_data_section, transforms, TN_OPT_TEXT, "", NULL,
           "transforms of a sample, in their order, separated by commas or lines"),
    TN_OPT(tn_data_section, device_transforms, TN_OPT_TEXT, "auto", NULL,
           "how many of the last transforms the device applies, inside the step: no, a number, or auto: none "
           "on the cpu, and on a device with memory of its own those that give the smallest batch"),
    TN_OPT(tn_data_section, cache, TN_OPT_TEXT, "auto", NULL,
           "memory for decoded samples, which later epochs do not read again: off, a size, or auto, a "
           "quarter of the available memory"),
    TN_OPT(tn_data_section, shuffle, TN_OPT_FLAG, "yes", NULL, "another order in every epoch of training"),
    TN_OPT(
        tn_data_section, balance, TN_OPT_FLAG, "no", NULL,
        "draw every class equally often in training: samples of a small class come several times an epoch, "
        "with other random transforms, and those of a large class come in later epochs"),
    TN_OPT(tn_data_section, last, TN_OPT_ENUM, "drop", "drop|pad",
           "the short last batch of training: drop it, or pad it with samples of weight 0"),
    TN_OPT(
        tn_data_section, corrupt, TN_OPT_ENUM, "error", "error|skip",
        "a sample that cannot be read: an error, or the next sample in its place, with a warning that names "
        "it"),
    TN_OPT_END};
static const tn_option optimizer_rows[] = {
    TN_OPT(tn_optimizer_section, type, TN_OPT_TEXT, TN_DEFAULT_OPTIMIZER, NULL, "name of the optimizer"),
    TN_OPT(tn_optimizer_section, clip, TN_OPT_FLOAT, "0", ">= 0",
           "gradient clipping: greatest norm of the whole gradient; 0: no limit"),
    TN_OPT(tn_optimizer_section, clip_value, TN_OPT_FLOAT, "0", ">= 0",
           "gradient clipping: greatest magnitude of each number of the gradient, before the others; 0: no "
           "limit"),
    TN_OPT(tn_optimizer_section, clip_layer, TN_OPT_FLOAT, "0", ">= 0",
           "gradient clipping: greatest norm of the gradient of each parameter, before clip; 0: no limit"),
    TN_OPT(
        tn_optimizer_section, clip_adaptive, TN_OPT_FLOAT, "0", ">= 0",
        "adaptive gradient clipping (AGC): greatest norm of the gradient of each output unit, as a part of "
        "the norm of the unit's weights, before clip; 0: no limit"),
    TN_OPT(tn_optimizer_section, clip_epsilon, TN_OPT_FLOAT, "0.001", "> 0",
           "clip_adaptive: least norm of the weights of a unit"),
    TN_OPT(tn_optimizer_section, layer_decay, TN_OPT_FLOAT, "1", "(0, 1]",
           "factor of the learning rate for each layer behind a parameter's: the last layer has lr itself"),
    TN_OPT(tn_optimizer_section, no_decay, TN_OPT_FLAG, "no", NULL,
           "no weight decay of parameters with less than two dimensions: of biases and norms"),
    TN_OPT(tn_optimizer_section, accumulate, TN_OPT_INT, "1", "[1, 65536]",
           "batches whose gradients are summed before an update; all of them are held at once"),
    TN_OPT(tn_optimizer_section, check_finite, TN_OPT_FLAG, "no", NULL,
           "skip updates whose gradients are not finite"),
    TN_OPT(
        tn_optimizer_section, cautious, TN_OPT_FLAG, "no", NULL,
        "leave out the elements of a step that do not agree with the gradient, and scale the others of the "
        "parameter by as much"),
    TN_OPT(tn_optimizer_section, lookahead, TN_OPT_INT, "0", ">= 0",
           "Lookahead: updates after which the parameters go back to slow ones, which have moved a part of "
           "the way; 0: none"),
    TN_OPT(tn_optimizer_section, lookahead_alpha, TN_OPT_FLOAT, "0.5", "[0, 1]",
           "the part of the way for lookahead"),
    TN_OPT(tn_optimizer_section, sharpness, TN_OPT_FLOAT, "0", ">= 0",
           "sharpness-aware minimization (SAM): norm of the perturbation of the parameters, along their "
           "gradient, at which a second pass over the batch computes the gradients of the update; 0: none"),
    TN_OPT(tn_optimizer_section, sharpness_adaptive, TN_OPT_FLAG, "no", NULL,
           "the perturbation of a number of a parameter has the scale of its magnitude (ASAM)"),
    TN_OPT(tn_optimizer_section, sharpness_eta, TN_OPT_FLOAT, "0.01", ">= 0",
           "sharpness_adaptive: added to the magnitudes"),
    TN_OPT(
        tn_optimizer_section, state_dtype, TN_OPT_ENUM, "f32", "f32|bf16|int8",
        "how the optimizer's states are kept; bf16: rounded stochastically; int8: 8 bits for an element and "
        "a greatest magnitude for each block of 256, of parameters with at least 4096 elements"),
    TN_OPT(tn_optimizer_section, place, TN_OPT_ENUM, "device", "device|host|auto",
           "where the optimizer's state and the parameters that it updates are: host: in memory of the host, "
           "whose "
           "backend updates them beside the backward pass, and the device has copies of the parameters; "
           "auto: on "
           "the host where the plan needs it to fit into memory_limit or into the device's memory"),
    TN_OPT(tn_optimizer_section, ema, TN_OPT_FLOAT, "0", "[0, 1)",
           "decay of an exponential moving average (EMA) of parameters and running statistics, which "
           "validation, the best checkpoint, eval and predict use: min(ema, (1 + n) / (10 + n)) after n "
           "updates; 0: none"),
    TN_OPT(tn_optimizer_section, swa_from, TN_OPT_INT, "0", ">= 0",
           "the first epoch, counted from 1, whose end enters the mean of parameters and running statistics, "
           "which validation, the best checkpoint, eval and predict use (SWA); 0: none"),
    TN_OPT(tn_optimizer_section, lr_batch, TN_OPT_INT, "0", ">= 0",
           "the batch that lr is meant for: an update of another number of samples has lr times their ratio; "
           "0: lr "
           "as it is"),
    TN_OPT(tn_optimizer_section, lr_rule, TN_OPT_ENUM, "linear", "linear|sqrt",
           "lr_batch: the ratio, or its square root"),
    TN_OPT_END};
static const tn_option schedule_rows[] = {
    TN_OPT(tn_schedule_section, type, TN_OPT_TEXT, TN_DEFAULT_SCHEDULE, NULL, "name of the schedule"),
    TN_OPT(tn_schedule_section, warmup, TN_OPT_INT, "0", ">= 0", "how long it warms up, in warmup_unit"),
    TN_OPT(tn_schedule_section, warmup_unit, TN_OPT_ENUM, "steps", "epochs|steps|samples", "unit of warmup"),
    TN_OPT(tn_schedule_section, warmup_shape, TN_OPT_ENUM, "linear", "linear|constant|exponential|cosine",
           "how the factor moves from warmup_start to 1 in the warm-up; constant: it jumps at its end"),
    TN_OPT(tn_schedule_section, warmup_start, TN_OPT_TEXT, "auto", NULL,
           "factor in the first step of the warm-up; auto: 1 / (N + 1) of N steps"),
    TN_OPT(tn_schedule_section, toward, TN_OPT_FLOAT, "0", NULL,
           "the value of the option where the factor is 0; it has its own value where the factor is 1"),
    TN_OPT(tn_schedule_section, metric, TN_OPT_TEXT, "", NULL,
           "the loss or metric of an epoch that plateau follows; empty: the loss"),
    TN_OPT(
        tn_schedule_section, metric_mode, TN_OPT_ENUM, "auto", "auto|min|max",
        "whether it is better when small or large; auto: losses and perplexity small, other metrics large"),
    TN_OPT_END};
static const tn_option distributed_rows[] = {
    TN_OPT(tn_distributed_section, communicator, TN_OPT_TEXT, "", NULL,
           "communicator between the devices; empty: one that serves the backend"),
    TN_OPT(tn_distributed_section, devices, TN_OPT_TEXT, "1", NULL,
           "how many devices of each process train together, or all: those of the host, divided among its "
           "processes"),
    TN_OPT(
        tn_distributed_section, processes, TN_OPT_TEXT, "auto", NULL,
        "how many processes train together; auto: those that a launcher has started (tenon launch, torchrun, "
        "mpirun, srun); 1: each process alone"),
    TN_OPT(tn_distributed_section, timeout, TN_OPT_DURATION, "300s", "(0, 1e8]",
           "how long a rank may keep the others waiting, in a collective, an exchange or when the processes "
           "leave, before it counts as lost"),
    TN_OPT(tn_distributed_section, hang, TN_OPT_TEXT, "auto", NULL,
           "how long the thread of a rank may compute or launch, or its device work outside of collectives, "
           "without an end, before it counts as lost: a duration; auto: ten times the longest such time so "
           "far, from 20 s to timeout; never"),
    TN_OPT(tn_distributed_section, straggler, TN_OPT_FLOAT, "1.5", ">= 0",
           "a warning names a rank whose own work in a step takes so many times that of the median rank; at "
           "most 1: no rank is named"),
    TN_OPT(tn_distributed_section, bucket, TN_OPT_TEXT, "auto", NULL,
           "gradients are summed over devices in pieces, each as soon as it is complete: of this size, or "
           "auto, so that the last sum is predicted to end earliest"),
    TN_OPT(tn_distributed_section, reduce_dtype, TN_OPT_ENUM, "f32", "f32|bf16|f16",
           "type in which gradients are summed over devices; the halves move half the bytes"),
    TN_OPT(tn_distributed_section, shard, TN_OPT_ENUM, "no", "no|optimizer",
           "optimizer: the devices divide the state of the optimizer and the f32 parameters that it updates, "
           "and "
           "each updates its own part (ZeRO stage 1); no: every device has all of it"),
    TN_OPT(tn_distributed_section, link, TN_OPT_TEXT, "pcie", NULL,
           "the link of a device to the others of its host, for predicted times: nvlink, pcie, infiniband, "
           "ethernet, or gigabytes a second in one direction and microseconds of latency, 25:6"),
    TN_OPT(tn_distributed_section, host_link, TN_OPT_TEXT, "ethernet", NULL,
           "the link of a host to the other hosts, which its devices share; as link"),
    TN_OPT(tn_distributed_section, host_ranks, TN_OPT_INT, "0", "[0, 65536]",
           "the devices of each host, for predicted times; 0: those that the launcher has started there, or "
           "all"),
    TN_OPT_END};
static const tn_option weights_rows[] = {
    TN_OPT(tn_weights_section, file, TN_OPT_PATH, "", NULL,
           "parameters to start from: a safetensors file, an index of shards (.safetensors.index.json), a "
           "run folder, or the folder of one of these"),
    TN_OPT(tn_weights_section, prefix, TN_OPT_TEXT, "", NULL, "prefix of every name in the file"),
    TN_OPT(tn_weights_section, rename, TN_OPT_TEXT, "", NULL,
           "names of the file as names of the model: OLD -> NEW, with * for equal parts"),
    TN_OPT(tn_weights_section, skip, TN_OPT_TEXT, "", NULL,
           "patterns of names that keep the model's values where the file lacks them, has too many or has "
           "another shape; *.num_batches_tracked always is skipped"),
    TN_OPT(tn_weights_section, transpose, TN_OPT_TEXT, "", NULL,
           "patterns of matrices that the file has as (in, out), as GPT-2's"),
    TN_OPT(tn_weights_section, base, TN_OPT_PATH, "", NULL,
           "where `file` holds adapters: the safetensors file of the weights below them; empty: the one with "
           "which "
           "they were trained"),
    TN_OPT(tn_weights_section, map, TN_OPT_ENUM, "auto", "auto|yes|no",
           "prediction on processors uses f32 matrices where a safetensors file has them, and reads nothing "
           "ahead; auto: of a file of 64 MiB or more"),
    TN_OPT_END};
static const tn_option precision_rows[] = {TN_OPT(tn_policy_section, policy, TN_OPT_TEXT, TN_DEFAULT_POLICY,
                                                  NULL,
                                                  "name of the policy that chooses the types of operands"),
                                           TN_OPT_END};
static const tn_option plugins_rows[] = {
    TN_OPT(tn_plugins_section, load, TN_OPT_TEXT, "", NULL,
           "plugin files, relative to this one; `?` behind a name: optional"),
    TN_OPT_END};
static const tn_option model_rows[] = {
    TN_OPT(tn_model_section, inputs, TN_OPT_TEXT, NULL, NULL,
           "fields that the model takes: image: f32[3, 224, 224]"),
    TN_OPT(tn_model_section, targets, TN_OPT_TEXT, "label: i32[]", NULL,
           "fields that losses and metrics take, as inputs"),
    TN_OPT(tn_model_section, lengths, TN_OPT_TEXT, "", NULL,
           "sizes, in ascending order, of the dimension that is a word, as n in x: f32[n, 80]"),
    TN_OPT(tn_model_section, sizes, TN_OPT_TEXT, "", NULL,
           "sizes, in ascending order, of the dimensions `size`, as in image: f32[3, size, size]: training "
           "takes "
           "them one after the other, and everything else the largest"),
    TN_OPT(tn_model_section, layers, TN_OPT_TEXT, NULL, NULL,
           "the model, one layer per line: NAME: LAYER(OPTIONS) <- INPUTS"),
    TN_OPT(tn_model_section, outputs, TN_OPT_TEXT, "", NULL,
           "names of lines whose values the model gives, the first is that of losses; empty: the last line"),
    TN_OPT(tn_model_section, loss, TN_OPT_TEXT, "", NULL,
           "losses that training minimizes, a line each; weight=FACTOR scales one of several"),
    TN_OPT(tn_model_section, metrics, TN_OPT_TEXT, "", NULL,
           "metrics that are reported with the loss, a line each or separated by commas"),
    TN_OPT_END};
static const tn_option block_rows[] = {
    TN_OPT(tn_block_section, args, TN_OPT_TEXT, "", NULL, "names of arguments, or NAME=default"),
    TN_OPT(tn_block_section, inputs, TN_OPT_TEXT, "", NULL, "names of the inputs; empty: one input, `in`"),
    TN_OPT(tn_block_section, layers, TN_OPT_TEXT, NULL, NULL, "the block, one layer per line"),
    TN_OPT(tn_block_section, outputs, TN_OPT_TEXT, "", NULL,
           "the results, names or expressions; empty: the last line's value"),
    TN_OPT(tn_block_section, flat, TN_OPT_FLAG, "no", NULL,
           "the names of the block's layers stand without the name of the line that uses it"),
    TN_OPT_END};
static const tn_option match_rows[] = {
    TN_OPT(tn_match_section, match, TN_OPT_TEXT, NULL, NULL,
           "patterns of parameter names, with * for any part: layer1.*, *.bias"),
    TN_OPT(
        tn_match_section, freeze, TN_OPT_TEXT, "no", NULL,
        "yes: do not train these parameters: no gradient, no optimizer state; a batch_norm whose parameters "
        "are frozen uses its running statistics and keeps them. N: the same in the epochs 1 to N, and from "
        "epoch N + 1 on they are trained. no: they are trained"),
    TN_OPT(tn_match_section, lr_scale, TN_OPT_FLOAT, "1", ">= 0", "factor of the learning rate"),
    TN_OPT(tn_match_section, depth, TN_OPT_INT, "-1", ">= -1",
           "place of the parameters among the layers, counted from 0, for layer_decay; -1: by the order of "
           "the layers"),
    TN_OPT(tn_match_section, clip_value, TN_OPT_FLOAT, "-1", ">= -1",
           "as in [optimizer]; -1: the value there"),
    TN_OPT(tn_match_section, clip_layer, TN_OPT_FLOAT, "-1", ">= -1",
           "as in [optimizer]; -1: the value there"),
    TN_OPT(tn_match_section, clip_adaptive, TN_OPT_FLOAT, "-1", ">= -1",
           "as in [optimizer], 0 for the head; -1: the value there"),
    TN_OPT_END};

static const tn_option phase_rows[] = {
    TN_OPT(tn_phase_section, match, TN_OPT_TEXT, NULL, NULL,
           "patterns of the parameters that the phase trains, with * for any part: generator.*"),
    TN_OPT(tn_phase_section, loss, TN_OPT_TEXT, NULL, NULL,
           "the losses that it minimizes, a line each, as in [model]"),
    TN_OPT(tn_phase_section, every, TN_OPT_INT, "1", ">= 1",
           "it takes its turn in every step, or in every so manieth: 5 is the steps 5, 10, 15 ..."),
    TN_OPT(tn_phase_section, optimizer, TN_OPT_TEXT, "", NULL,
           "name of its optimizer, whose options are further keys; empty: that of [optimizer]. Options that "
           "are not given, and clip and clip_value, have the values of [optimizer]"),
    TN_OPT_END};

static const tn_option adapt_rows[] = {
    TN_OPT(tn_adapt_section, type, TN_OPT_ENUM, "lora", "lora|dora",
           "lora: y = W x becomes y = W x + s B A x, with trained A and B and a frozen W (Hu et al., ICLR "
           "2022); dora: each unit of W + s B A is scaled to a trained norm, too (Liu et al., ICML 2024)"),
    TN_OPT(
        tn_adapt_section, match, TN_OPT_TEXT, NULL, NULL,
        "patterns of the paths of linear, convolution and embedding layers that get an adapter, with * for "
        "any part: *.attn.*, fc1"),
    TN_OPT(tn_adapt_section, rank, TN_OPT_INT, "8", "[1, 65536]", "rows of A and columns of B"),
    TN_OPT(tn_adapt_section, alpha, TN_OPT_FLOAT, "16", "> 0", "the scale s is alpha / rank"),
    TN_OPT(tn_adapt_section, dropout, TN_OPT_FLOAT, "0", "[0, 1)",
           "fraction of x that A reads as zero in training; not for embeddings"),
    TN_OPT(tn_adapt_section, rslora, TN_OPT_FLAG, "no", NULL,
           "the scale s is alpha / sqrt(rank) (Kalajdzievski, 2023)"),
    TN_OPT(tn_adapt_section, train, TN_OPT_TEXT, "", NULL,
           "patterns of other parameters that are trained in full, as those of a new head: fc.*"),
    TN_OPT_END};

static const tn_option prune_rows[] = {
    TN_OPT(tn_prune_section, sparsity, TN_OPT_FLOAT, "0.5", "[0, 1)", "the share of weights that are zero"),
    TN_OPT(tn_prune_section, initial, TN_OPT_FLOAT, "0", "[0, 1)",
           "the share at `first`, where there is `last`"),
    TN_OPT(tn_prune_section, match, TN_OPT_TEXT, "*", NULL,
           "patterns of the parameters, of those with two dimensions or more: *.weight"),
    TN_OPT(tn_prune_section, pattern, TN_OPT_TEXT, "none", NULL,
           "2:4: two of four neighbours along the last dimension stay, in place of `sparsity`; none: any do"),
    TN_OPT(tn_prune_section, first, TN_OPT_INT, "0", ">= 0", "steps or epochs in front of the first choice"),
    TN_OPT(tn_prune_section, last, TN_OPT_INT, "0", ">= 0",
           "steps or epochs in front of the last choice; between both the share grows as "
           "sparsity + (initial - sparsity) (1 - done)^3 (Zhu and Gupta, 2017); 0: one choice, at `first`"),
    TN_OPT(tn_prune_section, every, TN_OPT_INT, "100", ">= 1", "steps or epochs between two choices"),
    TN_OPT(tn_prune_section, unit, TN_OPT_ENUM, "steps", "steps|epochs", "unit of first, last and every"),
    TN_OPT(tn_prune_section, scope, TN_OPT_ENUM, "layer", "layer|global",
           "the least magnitudes of each parameter, or of all"),
    TN_OPT_END};

static const tn_option quantize_rows[] = {
    TN_OPT(
        tn_quantize_section, match, TN_OPT_TEXT, "*", NULL,
        "patterns of the paths of linear, convolution and embedding layers that compute with rounded inputs "
        "and weights, with * for any part: conv*, fc"),
    TN_OPT(tn_quantize_section, input_bits, TN_OPT_INT, "8", "[2, 8]",
           "an input has 2^input_bits numbers, of which one is 0"),
    TN_OPT(
        tn_quantize_section, weight_bits, TN_OPT_INT, "8", "[2, 8]",
        "each output channel of a weight, and each row of a table, has 2^weight_bits - 1 numbers, symmetric "
        "around 0"),
    TN_OPT(tn_quantize_section, observer, TN_OPT_ENUM, "average", "average|minmax",
           "the range of an input: average: a moving average of those of the batches; minmax: from the least "
           "to the greatest element of all batches"),
    TN_OPT(tn_quantize_section, averaging, TN_OPT_FLOAT, "0.01", "(0, 1]",
           "the part of a batch's range in the moving average"),
    TN_OPT(tn_quantize_section, observe, TN_OPT_INT, "0", ">= 0",
           "the ranges of inputs stay after so many steps; 0: they move in all"),
    TN_OPT_END};

static const tn_option source_rows[] = {TN_OPT(tn_source_section, source, TN_OPT_TEXT, NULL, NULL,
                                               "name of the source; its keys are those in [data]"),
                                        TN_OPT_END};

static const tn_option sweep_rows[] = {
    TN_OPT(tn_sweep_section, method, TN_OPT_ENUM, "auto", "auto|grid|random|halving|asha",
           "grid: all combinations of the lists; random: `runs` drawn ones; halving: the same, but all train "
           "for min_epochs, and the best part goes on for factor times as long, again and again (successive "
           "halving); asha: halving without waiting for the others of a round; auto: random where a value is "
           "a range, else grid"),
    TN_OPT(tn_sweep_section, runs, TN_OPT_INT, "16", "[1, 10000]",
           "combinations that random, halving and asha draw"),
    TN_OPT(tn_sweep_section, jobs, TN_OPT_INT, "0", "[0, 1024]",
           "runs at a time, which share the processors; 0: as many as processors, memory and devices allow"),
    TN_OPT(tn_sweep_section, folds, TN_OPT_INT, "0", "[0, 1000]",
           "each combination runs so many times, on another [data] fold each time; 0: once, without folds"),
    TN_OPT(tn_sweep_section, seed, TN_OPT_INT, "0", ">= 0", "another seed draws other combinations"),
    TN_OPT(tn_sweep_section, factor, TN_OPT_INT, "3", "[2, 100]",
           "halving, asha: one in so many goes on, for so many times as many epochs"),
    TN_OPT(tn_sweep_section, min_epochs, TN_OPT_INT, "1", ">= 1",
           "halving, asha: epochs of every combination in the first round"),
    TN_OPT_END};

#define TABLE(name, S, rows, doc)                                                                            \
  const tn_item tn_table_##name = {                                                                          \
      (uint32_t)sizeof(tn_item), 0, #name, doc, rows, (uint32_t)sizeof(tn_option), (uint32_t)sizeof(S)}
TABLE(run, tn_run_section, run_rows, "the run as a whole");
TABLE(backend, tn_backend_section, backend_rows, "devices and kernels");
TABLE(data, tn_data_section, data_rows, "samples; [data.train] and [data.valid] override");
TABLE(optimizer, tn_optimizer_section, optimizer_rows, "the optimizer, with its own options");
TABLE(schedule, tn_schedule_section, schedule_rows,
      "an option over time, with the schedule's own options: lr; [schedule.OPTION]: another option");
TABLE(distributed, tn_distributed_section, distributed_rows, "training on several devices at once");
TABLE(weights, tn_weights_section, weights_rows, "parameters to start from");
TABLE(precision, tn_policy_section, precision_rows, "element types, with the policy's own options");
TABLE(sweep, tn_sweep_section, sweep_rows,
      "runs that `tenon sweep` makes of this configuration; other keys are SECTION.KEY = VALUE, VALUE ...");
TABLE(plugins, tn_plugins_section, plugins_rows, "plugins in addition to the installed ones");
TABLE(model, tn_model_section, model_rows, "the network, its losses and metrics");
TABLE(block, tn_block_section, block_rows, "[block NAME]: layers that a model uses like one layer");
TABLE(group, tn_match_section, match_rows, "[group.NAME]: options of the optimizer for some parameters");
TABLE(phase, tn_phase_section, phase_rows,
      "[phase NAME]: a part of the model that is trained in its turn, by losses and an optimizer of its own");
TABLE(prune, tn_prune_section, prune_rows,
      "weights of small magnitude that become zero in training, and stay so");
TABLE(quantize, tn_quantize_section, quantize_rows,
      "training for 8 bits: inputs and weights of layers are rounded as a program of whole numbers rounds "
      "them");
TABLE(adapt, tn_adapt_section, adapt_rows,
      "adapters of low rank: the model's own weights are frozen; [adapt.NAME]: others, for other layers");
TABLE(source, tn_source_section, source_rows,
      "[source NAME]: a source that the source of [data] joins with others, as concat and zip do");
const tn_item *const tn_settings_tables[] = {&tn_table_run,
                                             &tn_table_model,
                                             &tn_table_block,
                                             &tn_table_data,
                                             &tn_table_source,
                                             &tn_table_optimizer,
                                             &tn_table_group,
                                             &tn_table_phase,
                                             &tn_table_prune,
                                             &tn_table_quantize,
                                             &tn_table_adapt,
                                             &tn_table_schedule,
                                             &tn_table_precision,
                                             &tn_table_backend,
                                             &tn_table_distributed,
                                             &tn_table_weights,
                                             &tn_table_sweep,
                                             &tn_table_plugins,
                                             NULL};
