#include "made.h"

MADE_LAYER(alpha);
MADE_LAYER(beta);
MADE_KERNEL(relu_here, "relu", "here");

TN_PLUGIN(first, "1.0", "MIT", &beta.item, &alpha.item, &relu_here.item)
