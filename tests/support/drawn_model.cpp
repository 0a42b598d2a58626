#include "tests/support/drawn_model.hpp"
#include "io/file/bytes.hpp"

namespace attn::test {

using nlohmann::json;

std::string drawn(const std::string& name, std::size_t count, double mean, double deviation) {
    const std::uint64_t state = hash_of_bytes(name);
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

std::size_t count_of(const json& shape) {
    std::size_t count = 1;
    for (const json& length : shape) count *= length.get<std::size_t>();
    return count;
}

std::string npy_of(const json& shape, const std::string& bytes, const std::string& descr,
                   bool is_fortran) {
    std::string header = "{'descr': '" + descr +
                         "', 'fortran_order': " + (is_fortran ? "True" : "False") + ", 'shape': (";
    for (const json& length : shape) header += length.dump() + ",";
    header += "), }";
    constexpr std::size_t start = 10, alignment = 64;
    header.append(alignment - 1 - (start + header.size()) % alignment, ' ');
    header += '\n';
    return std::string("\x93NUMPY\1\0", 8) + io::bytes_of_number(header.size(), 2) + header + bytes;
}

std::string safetensors_of(const std::vector<StoredTensor>& tensors) {
    json header = json::object();
    std::string data;
    for (const StoredTensor& one : tensors) {
        const std::size_t begin = data.size();
        data += one.bytes;
        header[one.name] = {
            {"dtype", one.dtype}, {"shape", one.shape}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    return io::bytes_of_number(text.size(), 8) + text + data;
}

void write_model(const json& c, const std::string& folder) {
    std::filesystem::create_directories(scratch_folder() + "/" + folder);
    write_text(folder + "/config.json", c["config"].dump());
    std::vector<StoredTensor> tensors;
    for (const auto& [name, row] : c["tensors"].items())
        tensors.push_back({name, "F32", row[0], drawn(name, count_of(row[0]), row[1], row[2])});
    write_text(folder + "/model.safetensors", safetensors_of(tensors));
}

std::string list_of(const json& numbers) {
    std::string text;
    for (const json& id : numbers) text += (text.empty() ? "" : ",") + id.dump();
    return text;
}

double difference_of(const json& found, const json& expected) {
    const std::vector<double> a = flat(found), b = flat(expected);
    REQUIRE_EQ(a.size(), b.size());
    double largest = 1, difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(b[i]));
        if (!(std::abs(a[i] - b[i]) <= difference)) difference = std::abs(a[i] - b[i]);
    }
    return difference / largest;
}

}  // namespace attn::test
