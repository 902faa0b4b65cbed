/* backends/onednn/library/matmul.h: products of matrices as lists of one primitive. */
#pragma once

#include "backends/onednn/library/primitive_list.h"
#include "tenon/attributes.h"

/* Adds the product of a match whose first node is a matmul of two matrices, without a bias. */
tn_status tn_dnnl_matmul_list(tn_primitive_list *list, const tn_match *match);
