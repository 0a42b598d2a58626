#include "cli/output/output_name.hpp"

#include "cli/page/render.hpp"
#include "core/base/error.hpp"
#include "io/plot/picture_formats.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {

bool has_to_promise(const std::string& path) {
    const bool is_known = promised_format(io::output_formats, path) != nullptr ||
                          promised_format(io::picture_formats, path) != nullptr ||
                          promised_format(page_formats, path) != nullptr;
    if (is_known || io::suffix_of_name(path).empty()) return is_known;
    return !io::is_empty_or_special(path);
}

void refuse_name(const OutputName& name, const std::vector<std::string_view>& suffixes) {
    std::string list;
    for (std::size_t i = 0; i < suffixes.size(); ++i)
        (list += i == 0 ? "" : i + 1 == suffixes.size() ? " or " : ", ") += suffixes[i];
    throw Error(ErrorKind::usage, name.where,
                name.problem + "; expected a name that ends in " + list + name.way);
}

void refuse_format(const std::string& where, const OutputName& name, std::string_view promised) {
    throw Error(ErrorKind::usage, where,
                "contradicts " + name.where + "; expected format " + std::string(promised) +
                    ", or another name");
}

}  // namespace attn::cli
