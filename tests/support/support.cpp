#include "tests/support/support.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace attn::test {
namespace {

class ScratchFolder {
public:
    ScratchFolder() {
        std::string pattern = std::filesystem::temp_directory_path() / "attn-test-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder");
        path_ = pattern;
        std::filesystem::current_path(path_);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

double number(const nlohmann::json& value) {
    if (value.is_number()) return value.get<double>();
    const std::string text = value.get<std::string>();
    return std::stod(text);  // takes inf, -inf, Infinity and nan
}

void flatten(const nlohmann::json& nested, std::vector<double>& out) {
    if (!nested.is_array()) return out.push_back(number(nested));
    for (const auto& element : nested) flatten(element, out);
}

}  // namespace

std::string data_path(const std::string& name) {
    return std::string(ATTN_DATA) + "/" + name;
}

io::Source make_source(std::string name, std::string_view text) {
    return io::read_source(io::Bytes::of(std::move(name), text));
}

nlohmann::json load_data(const std::string& name) {
    return nlohmann::json::parse(read_text(data_path(name)));
}

std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<std::string> manual_pages() {
    std::vector<std::string> pages{data_path("../README.md")};
    for (const auto& page : std::filesystem::directory_iterator(data_path("../cli/manual")))
        if (page.path().extension() == ".md") pages.push_back(page.path().string());
    std::sort(pages.begin() + 1, pages.end());
    return pages;
}

std::string manual_text() {
    std::string text;
    for (const std::string& page : manual_pages()) text += read_text(page);
    return text;
}

std::string from_base64(std::string_view text) {
    const std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    unsigned bits = 0, held = 0;
    for (const char c : text.substr(0, text.find_first_not_of(digits))) {
        bits = bits << 6 | static_cast<unsigned>(digits.find(c));
        if ((held += 6) >= 8) bytes += static_cast<char>(bits >> (held -= 8) & 0xff);
    }
    return bytes;
}

std::string script_of(const std::string& page, const std::string& id) {
    const std::string open = "<script type=\"application/json\" id=\"" + id + "\">";
    const std::size_t at = page.find(open);
    REQUIRE(at != std::string::npos);
    const std::size_t begin = at + open.size();
    return page.substr(begin, page.find("</script", begin) - begin);
}

void write_text(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

const std::string& scratch_folder() {
    static const ScratchFolder folder;
    return folder.path();
}

std::uint64_t seed_bits(const nlohmann::json& seed) {
    return seed.is_number_unsigned() ? seed.get<std::uint64_t>()
                                     : static_cast<std::uint64_t>(seed.get<std::int64_t>());
}

std::vector<double> flat(const nlohmann::json& nested) {
    std::vector<double> values;
    flatten(nested, values);
    return values;
}

std::vector<std::size_t> shape_of(const nlohmann::json& nested) {
    std::vector<std::size_t> shape;
    for (const nlohmann::json* level = &nested; level->is_array(); level = &level->front())
        shape.push_back(level->size());
    return shape;
}

Array<double> array_of(const nlohmann::json& nested) {
    const std::vector<double> values = flat(nested);
    Array<double> array = Array<double>::from_shape(shape_of(nested));
    std::copy(values.begin(), values.end(), array.begin());
    return array;
}

}  // namespace attn::test
