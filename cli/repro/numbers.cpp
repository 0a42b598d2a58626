// How far two programs that compute the same question may differ by rounding.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "cli/repro/program.hpp"
#include "core/base/error.hpp"
#include "core/check/evaluate.hpp"
#include "io/file/zip.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {

namespace {

/// The value with three digits, not below it but for the rounding to the type.
double with_three_digits(double value, Dtype dtype) {
    // Half a unit of the third digit is at most 0.5 %. Unlike stod, strtod takes subnormal numbers.
    return row_of(dtype).round(std::strtod(io::scientific_text(value * 1.005, 2).c_str(), nullptr));
}

}  // namespace

ProgramArray tolerances_of(const Problem& problem, ArrayId id, const ProgramArray& array,
                           ThreadPool& pool) {
    const Dtype dtype = problem.plan.config.dtype;
    const Evaluator evaluator(problem,
                              dtype == Dtype::float32 ? Precision::float32 : Precision::float64);
    const double least = row_of(dtype).least;
    const std::size_t heads = array.full[1], rows = array.full[2], columns = array.full[3];
    ProgramArray tolerances = array;
    tolerances.name += "_tolerance";
    std::vector<std::unique_ptr<Candidate>> of_worker(pool.threads());
    // Rows of all heads of a query are neighbours: candidates keep what these have in common.
    pool.run(array.full[0] * rows, [&](std::size_t item, std::size_t worker) {
        std::unique_ptr<Candidate>& candidate = of_worker[worker];
        if (!candidate) candidate = std::make_unique<Candidate>(evaluator, problem.asked, true);
        const std::size_t b = item / rows, row = item % rows;
        for (std::size_t head = 0; head < heads; ++head) {
            const std::vector<double>& errors = candidate->row(id, b, head, row).error;
            double* const to = &tolerances.values[((b * heads + head) * rows + row) * columns];
            for (std::size_t i = 0; i < errors.size(); ++i)
                to[i] = with_three_digits(2 * errors[i] + least, dtype);
        }
    });
    for (std::size_t at = 0; at < tolerances.values.size(); ++at)
        if (!std::isfinite(tolerances.values[at]))
            throw Error(ErrorKind::input, array.name + " " + index_text(at, array.full),
                        "the bound on its rounding error is not finite; expected smaller numbers, "
                        "or --dtype float64");
    return tolerances;
}

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
        [&](const ProgramArray& array) { use(array, bytes_of(array, program.plan.config.dtype)); });
}

}  // namespace

void write_npz_data(io::Output& out, const Repro& program) {
    io::ZipWriter zip(out);
    const char* const real = program.plan.config.dtype == Dtype::float32 ? "<f4" : "<f8";
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
