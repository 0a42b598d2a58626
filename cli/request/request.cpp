#include "cli/request/request.hpp"

#include "cli/request/options.hpp"

namespace attn::cli {

bool is_from_flag(const Request& request, std::string_view key) {
    const auto place = request.places.find(key);
    return place != request.places.end() &&
           (place->second.is_default || place->second.text.starts_with("--"));
}

io::Access access_to(const Request& request, std::string_view key) {
    io::Access access = request.access;
    access.regular_only = access.regular_only || !is_from_flag(request, key);
    return access;
}

std::string text_of(const Request& request, const std::string& key, const Place& place) {
    if (!place.in_document) return place.text;
    const std::string where = request.document->place(place.offset);
    return place.value.empty() ? where : where + ": " + key + " " + io::shortened(place.value);
}

Request without_document(Request request) {
    for (auto& [key, place] : request.places) place = Place(text_of(request, key, place));
    request.document.reset();
    return request;
}

std::string place_of(const Request& request, const std::string& key) {
    const auto found = request.places.find(key);
    if (found != request.places.end()) return text_of(request, key, found->second);
    const Option* option = find_option(key);
    return option != nullptr ? flag_of(*option) : key;
}

}  // namespace attn::cli
