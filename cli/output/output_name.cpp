#include "cli/output/output.hpp"

#include "cli/page/page.hpp"
#include "core/base/error.hpp"
#include "io/plot/picture_formats.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {

bool must_name_format(const std::string& path) {
    const bool is_known = format_of_suffix(io::output_formats, path) != nullptr ||
                          format_of_suffix(io::picture_formats, path) != nullptr ||
                          format_of_suffix(page_formats, path) != nullptr;
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

void refuse_format(const std::string& where, const OutputName& name, std::string_view named) {
    throw Error(ErrorKind::usage, where,
                "contradicts " + name.where + "; expected format " + std::string(named) +
                    ", or another name");
}

}  // namespace attn::cli
