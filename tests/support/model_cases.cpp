#include "tests/support/model_cases.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "tests/support/support.hpp"

namespace attn::test {
namespace {

using nlohmann::json;

/// The elements of a tensor, drawn from its name; see tests/make_model_cases.py.
std::string drawn(const std::string& name, std::size_t count, double mean, double deviation) {
    std::uint64_t state = 0xCBF29CE484222325U;
    for (const char c : name)
        state = (state ^ static_cast<unsigned char>(c)) * std::uint64_t{0x100000001B3U};
    std::string bytes(count * sizeof(float), '\0');
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = state + (i + 1) * std::uint64_t{0x9E3779B97F4A7C15U};
        bits = (bits ^ (bits >> 30U)) * std::uint64_t{0xBF58476D1CE4E5B9U};
        bits = (bits ^ (bits >> 27U)) * std::uint64_t{0x94D049BB133111EBU};
        bits ^= bits >> 31U;
        const double uniform = static_cast<double>(bits >> 40U) * 0x1p-23 - 1;
        const auto value = static_cast<float>(mean + deviation * std::sqrt(3.0) * uniform);
        std::memcpy(&bytes[i * sizeof(float)], &value, sizeof(float));
    }
    return bytes;
}

}  // namespace

void write_model(const json& model, const std::string& folder) {
    std::filesystem::create_directories(scratch_folder() + "/" + folder);
    write_text(folder + "/config.json", model["config"].dump());
    json header = json::object();
    std::string data;
    for (const auto& [name, row] : model["tensors"].items()) {
        std::size_t count = 1;
        for (const json& length : row[0]) count *= length.get<std::size_t>();
        const std::size_t begin = data.size();
        data += drawn(name, count, row[1], row[2]);
        header[name] = {
            {"dtype", "F32"}, {"shape", row[0]}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
    write_text(folder + "/model.safetensors", length + text + data);
}

std::string ids_of(const json& model) {
    std::string text;
    for (const json& id : model["token_ids"]) text += (text.empty() ? "" : ",") + id.dump();
    return text;
}

std::vector<json> model_cases() {
    std::istringstream lines(read_text(data_path("models/families.ndjson")));
    std::vector<json> cases;
    for (std::string line; std::getline(lines, line);) cases.push_back(json::parse(line));
    return cases;
}

}  // namespace attn::test
