#include "quant/dequantize.h"

#include "quant/block_formats.h"
