/* backends/tcp/plugin.c: the descriptor. */
#include "backends/tcp/tcp.h"

TN_PLUGIN(tcp, "0.1.0", "MIT", &tn_tcp_communicator.item)
