#include "tests/fakecuda/nvrtc/build.h"

const char nvrtc_host_text[] =
#include "host_text.inc"
    ;
