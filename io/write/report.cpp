// The table of output formats; see report.hpp.
#include "io/write/report.hpp"

namespace attn::io {

std::string head_text(const Report& report) {
    std::string text = "{";
    for (const auto& [name, value] : report.head)
        (((text += text.size() == 1 ? "\"" : ",\"") += name) += "\":") += value;
    return text += "}";
}

Writer writer_for(Format format) {
    switch (format) {
        case Format::csv: return write_csv;
        case Format::tsv: return write_tsv;
        case Format::npy: return write_npy;
        case Format::npz: return write_npz;
        case Format::safetensors: return write_safetensors;
        case Format::torch: return write_torch;
        case Format::table: return write_table;
        case Format::none: return [](Output&, const Report&, const NumberStyle&) {};
        case Format::json:
        case Format::ndjson: break;
    }
    return write_json;
}

}  // namespace attn::io
