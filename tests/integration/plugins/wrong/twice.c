/* Two items of one kind and name. */
#include "wrong.h"

WRONG_SCHEDULE(late);

TN_PLUGIN(twice, "1.0", "MIT", &late.item, &late.item)
