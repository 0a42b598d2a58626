
// ---- The selected row or column as bars, with exact numbers

const mostBars = 100;  // unless all are requested

/// The cells of a row, or of a column, of the map.
function cellsOf(by, index) {
    const columns = map.columns.size;
    return by === 'row' ? Array.from({length: columns}, (_, column) => index * columns + column)
                        : Array.from({length: map.rows.size}, (_, row) => row * columns + index);
}

/// The index of a cell on the other side.
const placeAcross = (by, cell) =>
    by === 'row' ? cell % map.columns.size : Math.floor(cell / map.columns.size);

const isNumber = (cell) => !shown.flags[cell] && Number.isFinite(shown.numbers[cell]);

function barOf(cell, full, hasBelow) {
    const across = sideOf(otherSide[chosen.by]), place = placeAcross(chosen.by, cell);
    const track = made('span', 'track');
    const value = shown.numbers[cell];
    if (isNumber(cell) && full > 0) {
        const length = Math.abs(value) / full * (hasBelow ? 50 : 100);
        const bar = made('span', !map.diverging ? 'bar' : value < 0 ? 'bar below' : 'bar above');
        bar.style.width = `${length}%`;
        bar.style.left = !hasBelow ? '0' : `${value < 0 ? 50 - length : 50}%`;
        track.append(bar);
    }
    return made('li', '', tokenOf(across, place),
                made('span', 'index', across.tokens ? placeOf(across, place) : ''),
                track, made('span', 'number', numberText(cell)));
}

function showBars() {
    if (!shown || chosen.row === null) return;
    element('bars-title').replaceChildren(...nameOf(sideOf(chosen.by), chosen[chosen.by]));
    const all = cellsOf(chosen.by, chosen[chosen.by]);
    const open = all.filter((cell) => !shown.flags[cell]);
    const sizeOf = (cell) => isNumber(cell) ? Math.abs(shown.numbers[cell]) : Infinity;
    const bySize = [...open].sort((a, b) => sizeOf(b) - sizeOf(a) || a - b);
    const full = bySize.reduce((most, cell) => isNumber(cell) ? Math.max(most, sizeOf(cell)) : most, 0);
    const isCut = open.length > mostBars && !element('all-bars').checked;
    element('all-bars').parentElement.hidden = open.length <= mostBars;
    const kept = isCut ? bySize.slice(0, mostBars).sort((a, b) => a - b) : open;
    if (element('largest-first').checked) {
        const rank = (cell) => isNumber(cell) ? shown.numbers[cell] : -Infinity;
        kept.sort((a, b) => rank(b) - rank(a) || a - b);
    }
    const list = element('bar-list'), hasBelow = open.some((cell) => shown.numbers[cell] < 0);
    const items = kept.map((cell) => barOf(cell, full, hasBelow));
    const digits = Math.max(1, ...items.map((item) => item.lastChild.textContent.length));
    const across = sideOf(otherSide[chosen.by]), label = chosen.by === 'row' ? map.widestColumn : map.widestRow;
    list.style.setProperty('--digits', `${digits}ch`);
    list.style.setProperty('--label', `${Math.ceil(Math.min(1.2 * label, widestLabel))}px`);
    list.style.setProperty('--index', across.tokens ? `${String(placeOf(across, across.size - 1)).length}ch` : '0');
    list.replaceChildren(...items);
    const notes = [];
    if (full > 0) notes.push(`A full bar is ${briefText(full)}, the largest here.`);
    if (isCut) notes.push(`The ${mostBars} largest of ${open.length}.`);
    if (open.length < all.length) notes.push(`${all.length - open.length} masked.`);
    element('bars-note').textContent = notes.join(' ');
}
