/* An op with every type of option, operands and options whose names C or C++ takes for itself, and texts that
 * would end a comment: for the header that `tenon reference --header odd` writes. It returns its first
 * operand. */
#include <tenon/plugin/op.h>

struct odd {
  tn_ints dims;
  int32_t flag, mode, dtype;
  int64_t build, memory;
  double scale, time;
  const char *text, *path, *init, *code;
  tn_ints axes;
  tn_floats weights;
};

#define OWN(name, field, TYPE, default_text, range, doc)                                                     \
  {                                                                                                          \
    name, TYPE, 0, (uint32_t)offsetof(struct odd, field), TN_OPT_FIELD_BYTES(struct odd, field),             \
        default_text, range, doc                                                                             \
  }

static const tn_option options[] = {
    TN_OPT(struct odd, dims, TN_OPT_INTS, NULL, NULL, "of the result"),
    TN_OPT(struct odd, flag, TN_OPT_FLAG, "no", NULL, "a flag"),
    TN_OPT(struct odd, build, TN_OPT_INT, "3", ">= 1", "the builder's name"),
    OWN("x", scale, TN_OPT_FLOAT, "1", NULL, "the name of an operand"),
    TN_OPT(struct odd, text, TN_OPT_TEXT, "word", NULL, "ends here */ int broken; /* or does not"),
    TN_OPT(struct odd, path, TN_OPT_PATH, "", NULL, "a path"),
    TN_OPT(struct odd, mode, TN_OPT_ENUM, "zeros", "zeros|reflect|circular", "a choice"),
    TN_OPT(struct odd, axes, TN_OPT_INTS, "[0]", NULL, "a list with a default"),
    OWN("default", weights, TN_OPT_FLOATS, NULL, NULL, "a word of C"),
    OWN("n_axes", memory, TN_OPT_SIZE, "1MiB", NULL, "the name of a list's length"),
    TN_OPT(struct odd, time, TN_OPT_DURATION, "1s", NULL, "seconds"),
    TN_OPT(struct odd, dtype, TN_OPT_DTYPE, "f32", NULL, "of the result"),
    TN_OPT(struct odd, init, TN_OPT_INIT, "zeros", NULL, "an initializer"),
    OWN("register", code, TN_OPT_CODE, "", NULL, "folders of code"),
    TN_OPT_END};

static tn_status infer(tn_infer *n) {
  const struct odd *o = n->node.attributes;
  n->node.out[0].dtype = o->dtype;
  n->node.out[0].rank = (int32_t)o->dims.n;
  for (int32_t i = 0; i < o->dims.n; i++) n->node.out[0].dims[i] = o->dims.v[i];
  return TN_OK;
}

static tn_status decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_build_in(b, 0));
  return TN_OK;
}

static const tn_op odd = {.item = TN_ITEM(tn_op, TN_OP, "odd", "its first operand */", struct odd, options),
                          .schema = "(x:T, template?:T, xs*:T) -> (y:any); T in f32 f64",
                          .infer = infer,
                          .decompose = decompose,
                          .notes = "A second sentence /* of the notes."};

TN_PLUGIN(odd, "1.0", "MIT", &odd.item)
