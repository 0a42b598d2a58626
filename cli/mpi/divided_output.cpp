#include "cli/mpi/divided.hpp"

#include <utility>
#include <vector>

#include "cli/output/output.hpp"
#include "core/base/error.hpp"
#include "io/file/output.hpp"
#include "io/file/temporary.hpp"

namespace attn::cli {
namespace {

void write_one(const io::SharedFile& file, std::uint64_t offset, const WrittenRows& rows) {
    const std::size_t matrix_bytes = rows.rows * rows.row_bytes;
    std::size_t from = 0;
    for (std::size_t b = 0; b < rows.batch; ++b)
        for (std::size_t h = 0; h < rows.heads; ++h, from += matrix_bytes) {
            const std::size_t matrix =
                (rows.first_batch + b) * rows.all_heads + rows.first_head + h;
            file.write(offset + (matrix * rows.all_rows + rows.first_row) * rows.row_bytes,
                       rows.bytes.substr(from, matrix_bytes));
        }
}

}  // namespace

FileLayout layout_of(const Question& question, const Plan& plan, ThreadPool& workers) {
    Result result;
    std::vector<ArrayId> ids;
    FileLayout layout;
    std::uint64_t elements = 0;
    for_dtype(plan.config.dtype, [&]<class T>(T) {
        plan.emit.for_each([&](ArrayId id) {
            // A stream without rows: writers write what comes before the elements. Arrays of one
            // type follow in order.
            NamedArray array{std::string(id.row().name), {}, plan.axes_of(id)};
            array.stream = RowStream<T>{plan.shape_of(id), [] { return Array<T>(); }};
            result.arrays.push_back(std::move(array));
            layout.offsets[id.index] = elements * sizeof(T);
            elements += plan.numbers<std::uint64_t>(id);
        });
    });
    const io::Report report = make_report(question.request, plan, std::move(result), workers);
    io::TextOutput header;
    write_report(header, question.request, report);
    layout.header = std::move(header.text());
    for (auto& [index, offset] : layout.offsets) offset += layout.header.size();
    return layout;
}

void write_divided(const std::string& path, const FileLayout& layout, const Communicator& world,
                   FunctionRef<void(FunctionRef<void(const WrittenRows&)> write)> write_rows) {
    std::optional<io::OutputFile> created;  // by rank 0
    world.together([&] {
        if (world.rank() != 0) return;
        created.emplace(path);
        if (created->is_in_place())
            throw Error(
                ErrorKind::usage, path,
                "is not a file on a disk, so ranks cannot write their rows to it; expected one");
        created->fill([&](io::Output& to) { to << layout.header; });
    });
    const std::string unfinished =
        world.from_first(created ? created->unfinished_name() : std::string());
    std::optional<io::SharedFile> file;
    // From here on, whichever rank is killed, the others remove the file.
    world.together([&] { file.emplace(unfinished, path); });
    world.together([&] {
        write_rows([&](const WrittenRows& rows) {
            write_one(*file, layout.offsets.at(rows.array.index), rows);
        });
        file->finish();
    });
    world.together([&] {
        if (created) created->commit();
    });
    file->leave();
}

}  // namespace attn::cli
