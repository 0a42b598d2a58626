// The table of output formats; see writers.hpp.
#include "io/writers.hpp"

namespace attn::io {

Writer writer_for(Format format) {
    switch (format) {
        case Format::torch: return write_torch;
        case Format::table: return write_table;
        case Format::json: break;
    }
    return write_json;
}

}  // namespace attn::io
