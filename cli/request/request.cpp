#include "cli/request/request.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace attn::cli {

bool is_from_flag(const Request& request, std::string_view key) {
    const auto place = request.locations.find(key);
    return place != request.locations.end() &&
           (place->second.is_default || place->second.text.starts_with("--"));
}

io::Access access_to(const Request& request, std::string_view key) {
    io::Access access = request.access;
    access.regular_only = access.regular_only || !is_from_flag(request, key);
    return access;
}

std::string text_of(const Request& request, const std::string& key, const Location& place) {
    if (!place.in_document) return place.text;
    const std::string where = request.document->place(place.offset);
    return place.value.empty() ? where : where + ": " + key + " " + io::shortened(place.value);
}

Request without_document(Request request) {
    for (auto& [key, place] : request.locations) {
        Location as_text(text_of(request, key, place));
        as_text.is_key = place.is_key;
        place = std::move(as_text);
    }
    request.document.reset();
    return request;
}

std::string location_of(const Request& request, const std::string& key) {
    const auto found = request.locations.find(key);
    if (found != request.locations.end()) return text_of(request, key, found->second);
    const Option* option = find_option(key);
    return option != nullptr ? flag_of(*option) : key;
}

bool is_from_key(const Request& request, const std::string& key) {
    const auto place = request.locations.find(key);
    return place != request.locations.end() && place->second.is_key;
}

Error setting_error(const Request& request, const std::string& key, const std::string& message) {
    return {ErrorKind::usage, location_of(request, key),
            is_from_key(request, key) ? with_keys(message) : message};
}

std::string with_keys(std::string message) {
    constexpr std::string_view dashes = "--", negation = "no-";
    for (std::size_t at = 0; (at = message.find(dashes, at)) != std::string::npos; ++at) {
        const auto end = std::find_if(message.begin() + std::ptrdiff_t(at), message.end(),
                                      [](char c) { return c != '-' && !std::islower(c); });
        const std::size_t length = std::size_t(end - message.begin()) - at;
        std::string key = message.substr(at + dashes.size(), length - dashes.size());
        const bool is_negated = key.starts_with(negation);
        if (is_negated) key.erase(0, negation.size());
        std::replace(key.begin(), key.end(), '-', '_');
        const Option* const option = find_option(key);
        if (option == nullptr || (option->use & as_key) == 0) continue;
        message.replace(at, length, key + (is_negated ? " false" : ""));
    }
    return message;
}

}  // namespace attn::cli
