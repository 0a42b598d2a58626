#include "io/file/inflater.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace attn::io {

struct Inflater::Stream {
    z_stream state{};

    ~Stream() { inflateEnd(&state); }
};

Inflater::Inflater(Form form) : form_(form), stream_(std::make_unique<Stream>()) {
    constexpr int gzip_alone = 16 + MAX_WBITS, raw = -MAX_WBITS;
    if (inflateInit2(&stream_->state, form == Form::gzip ? gzip_alone : raw) != Z_OK)
        throw std::bad_alloc();
}

Inflater::~Inflater() = default;

bool Inflater::inflate(std::string_view& input, std::span<char>& to) {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    z_stream& state = stream_->state;
    while (damage_.empty() && !to.empty() && (!input.empty() || has_more_)) {
        if (!in_member_) {
            if (form_ == Form::deflate && members_ != 0) {
                damage_ = "other bytes after the end";
                continue;
            }
            if (members_ != 0 && input.front() == '\0') {
                input.remove_prefix(1);
                ++consumed_;
                continue;
            }
            if (members_ != 0) inflateReset(&state);
            in_member_ = true;
        }
        const auto in = static_cast<uInt>(std::min(input.size(), most)),
                   out = static_cast<uInt>(std::min(to.size(), most));
        // zlib only reads it.
        state.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input.data()));
        state.avail_in = in;
        state.next_out = reinterpret_cast<Bytef*>(to.data());
        state.avail_out = out;
        const int status = ::inflate(&state, Z_NO_FLUSH);
        input.remove_prefix(in - state.avail_in);
        consumed_ += in - state.avail_in;
        to = to.subspan(out - state.avail_out);
        has_more_ = status == Z_OK && state.avail_out == 0;
        if (status == Z_MEM_ERROR) throw std::bad_alloc();
        if (status == Z_STREAM_END) {
            in_member_ = false;
            ++members_;
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            damage_ = state.msg != nullptr ? state.msg : "no deflated data";
        }
    }
    return damage_.empty();
}

std::string Inflater::fault() const {
    if (damage_ == "incorrect header check" && members_ != 0)
        return "other bytes after the end of the gzip data; expected only gzip, or zeros";
    if (!damage_.empty())
        return "the gzip data are damaged here (" + damage_ +
               "); expected the file as it was compressed, which gzip -t checks";
    if (in_member_ || members_ == 0)
        return "the gzip data end here, cut off; expected the rest of the file, which gzip -t "
               "checks";
    return "";
}

}  // namespace attn::io
