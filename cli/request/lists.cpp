// Lists in the text of flags.
#include "cli/request/field.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::cli {

std::vector<std::pair<std::string, std::string>> name_pairs(std::span<const std::string> words,
                                                            const std::string& location) {
    std::vector<std::pair<std::string, std::string>> names;
    for (const std::string& word : words) {
        const std::size_t equals = word.rfind('=');
        const bool is_pair = equals != std::string::npos;
        std::pair<std::string, std::string> name{is_pair ? word.substr(0, equals) : "",
                                                 is_pair ? word.substr(equals + 1) : word};
        for (const auto& [theirs, ours] : names)
            if ((is_pair && theirs == name.first) || ours == name.second)
                throw Error(ErrorKind::usage, location, io::shortened(word),
                            ": named twice; expected it once");
        names.push_back(std::move(name));
    }
    return names;
}

std::vector<std::uint64_t> whole_list(const Args& args, std::string_view key) {
    std::vector<std::uint64_t> list;
    const std::optional<std::string> text = args.text(key);
    for (const std::string& word : text ? split_list(*text) : std::vector<std::string>()) {
        const auto number = io::number_of_text<std::uint64_t>(word);
        if (!number || *number > std::uint64_t{1} << 31U) args.fail(key);
        list.push_back(*number);
    }
    return list;
}

std::vector<std::string> split_list(const std::string& text) {
    std::vector<std::string> parts;
    const std::string closed = text + ',';  // so that the last part may be empty
    for (std::string_view part : io::split_text(closed, ',')) {
        part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
        parts.emplace_back(part.substr(0, part.find_last_not_of(' ') + 1));
    }
    return parts;
}

}  // namespace attn::cli
