/* Brings a schedule that Tenon itself has. */
#include "wrong.h"

WRONG_SCHEDULE(cosine);

TN_PLUGIN(twin, "1.0", "MIT", &cosine.item)
