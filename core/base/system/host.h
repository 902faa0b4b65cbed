/* core/base/system/host.h: the machine and the build, for reports. */
#pragma once

#include <stddef.h>

enum { TN_HOST_TEXT = 256 };

/* "Intel(R) Xeon(R) Processor"; "" where /proc/cpuinfo has no such line. */
void tn_host_processor(char text[TN_HOST_TEXT]);
/* The instruction sets that kernels may use, in the words of /proc/cpuinfo: "avx avx2 f16c fma". `cpuinfo` is
 * the file; tests pass made-up ones. */
void tn_host_instructions(const char *cpuinfo, char text[TN_HOST_TEXT]);
/* "Linux 6.1.0 x86_64" */
void tn_host_system(char text[TN_HOST_TEXT]);
void tn_host_name(char text[TN_HOST_TEXT]);
/* The time in UTC, "2026-05-01T09:12:44Z". */
void tn_host_time(char text[TN_HOST_TEXT]);

#define TN_CPUINFO "/proc/cpuinfo"

/* The commit of the sources: of libtenon (core/linked.c); "" where the build did not know it, and in programs
 * that link single rooms. */
extern const char tn_commit_text[];
/* "gcc 12.2.0" */
extern const char tn_compiler_text[];
