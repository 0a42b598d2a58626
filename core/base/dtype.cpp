#include "core/base/dtype.hpp"

namespace attn {

std::string overflow_text(Dtype dtype) {
    const DtypeRow& row = row_of(dtype);
    const DtypeRow& widest = dtype_rows.back();
    std::string text = "overflows " + std::string(row.name) + "; expected at most ";
    text += row.largest;
    if (&row != &widest) (text += ", or dtype ") += widest.name;
    return text;
}

}  // namespace attn
