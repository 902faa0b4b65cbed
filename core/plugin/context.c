/* core/plugin/context.c: contexts: an allocator, a log, a registry. */
#include "core/plugin/context.h"
#include "core/plugin/handles.h"

#include <stdlib.h>
#include <string.h>

/* Weak, so that a program which links single rooms need not define the lists. */
__attribute__((weak)) const tn_plugin_entry tn_linked_plugins[] = {NULL};
__attribute__((weak)) const tn_left_out tn_left_out_parts[] = {{NULL, NULL}};

const char *tn_version(void) { return TN_VERSION_TEXT; }

void tn_string_free(const void *handle, char *text) {
  if (handle != NULL) tn_release(handle, text);
}

/* The context's own memory comes from the allocator that it will have. */
static tn_context *context_new(const tn_context_options *options) {
  void *user = options->realloc_user;
  tn_context *context =
      options->realloc != NULL ? options->realloc(user, NULL, sizeof(*context)) : malloc(sizeof(*context));
  if (context == NULL) return NULL;
  memset(context, 0, sizeof(*context));
  tn_error_record_init_root(&context->env, &context->record, &tn_host_api);
  context->record.allocator = (tn_allocator){user, options->realloc};
  context->record.sink = (tn_log_sink){options->log_user, options->log, options->log_level};
  return context;
}

static tn_status context_add_linked(tn_context *context) {
  for (const tn_plugin_entry *entry = tn_linked_plugins; *entry != NULL; entry++)
    TN_TRY(tn_registry_add(context->registry, context, (*entry)(), ""));
  return TN_OK;
}

/* Linked plugins come first, so a plugin file with an item of the same name is refused. */
static tn_status context_fill_registry(tn_context *context, const char *folder) {
  TN_TRY(tn_registry_create(context, "", &context->registry));
  TN_TRY(context_add_linked(context));
  if (folder == NULL) return tn_default_folders(context, context->registry);
  return folder[0] != '\0' ? tn_registry_add_folder(context->registry, context, folder) : TN_OK;
}

tn_status tn_context_open(const tn_context_options *given, tn_context **context) {
  tn_context_options options;
  if (context == NULL) return TN_EINVAL;
  TN_THREAD_STATE;
  /* without a valid struct there is no allocator yet: the context that reports it is made by malloc */
  bool valid = TN_READ_STRUCT(NULL, tn_context_options, realloc, given, &options) == TN_OK;
  tn_context *opened = *context = context_new(&options);
  if (opened == NULL) return TN_ENOMEM;
  if (!valid) return TN_READ_STRUCT(opened, tn_context_options, realloc, given, &options);
  return context_fill_registry(opened, options.plugin_folder);
}

int32_t tn_context_close(tn_context *context) {
  if (context == NULL) return 0;
  if (context->kept) return 1;
  TN_THREAD_STATE;
  if (context->ops_destroy != NULL) context->ops_destroy(context->ops);
  tn_registry_destroy(context->registry);
  tn_allocator allocator = context->record.allocator;
  if (allocator.realloc != NULL)
    allocator.realloc(allocator.context, context, 0);
  else
    free(context);
  return 0;
}

tn_status tn_context_load(tn_context *context, const char *path) {
  TN_ENTER(context);
  TN_NEED(context, path, "path");
  return tn_registry_load(context->registry, context, path);
}

tn_status tn_context_write_index(tn_context *context, const char *folder) {
  TN_ENTER(context);
  TN_NEED(context, folder, "folder");
  return tn_registry_write_index(context, folder);
}
