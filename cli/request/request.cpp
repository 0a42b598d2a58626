#include "cli/request/request.hpp"

#include "cli/request/options.hpp"

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
    for (auto& [key, place] : request.locations) place = Location(text_of(request, key, place));
    request.document.reset();
    return request;
}

std::string location_of(const Request& request, const std::string& key) {
    const auto found = request.locations.find(key);
    if (found != request.locations.end()) return text_of(request, key, found->second);
    const Option* option = find_option(key);
    return option != nullptr ? flag_of(*option) : key;
}

}  // namespace attn::cli
