#include "cli/repro/program.hpp"

#include <bit>
#include <cstddef>

#include "io/file/zip.hpp"
#include "io/read/npy.hpp"

namespace attn::cli {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written in their memory layout");

std::string bytes_of(const ProgramArray& array, Dtype dtype) {
    std::string bytes;
    const auto append = [&](auto number) {
        bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    for (const double x : array.values) {
        if (array.is_boolean)
            append(static_cast<unsigned char>(x != 0));
        else if (dtype == Dtype::float32)
            append(static_cast<float>(x));
        else
            append(x);
    }
    return bytes;
}

template <class Use>
void for_each_array(const Repro& program, const Use& use) {
    program.for_each_array(
        [&](const ProgramArray& array) { use(array, bytes_of(array, program.plan.dtype)); });
}

}  // namespace

void write_npz_data(io::Output& out, const Repro& program) {
    io::ZipWriter zip(out);
    const char* const real = program.plan.dtype == Dtype::float32 ? "<f4" : "<f8";
    for_each_array(program, [&](const ProgramArray& array, const std::string& bytes) {
        const std::string header = io::npy_header(array.is_boolean ? "|b1" : real, array.shape);
        zip.begin(array.name + ".npy", header.size() + bytes.size());
        zip.write(header);
        zip.write(bytes);
        zip.end();
    });
    zip.finish();
}

void write_raw_data(io::Output& out, const Repro& program) {
    for_each_array(program, [&](const ProgramArray&, const std::string& bytes) { out << bytes; });
}

}  // namespace attn::cli
