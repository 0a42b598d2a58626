
// ---- The map: sizes

const view = element('view');
const canvas = element('map');
const pen = canvas.getContext('2d');
const raster = document.createElement('canvas');  // what is shown, one pixel per cell

const widestLabel = 110, biggestCell = 64, labelRoom = 14;
const overhang = 7;  // of the labels of small cells at the edges
const leastMap = 48, leastChart = 300;
const font = '12px system-ui, "DejaVu Sans", sans-serif';

let shown = null;  // the selected numbers: of one matrix, or the mean of several
let cursor = {row: 0, column: 0};
let isPointing = false;  // the cursor has been set
let zoom = 0;            // cells are 2^zoom times the size that fits
let layout = null;

const leastWhole = 3;  // pixels

/// Whole screen pixels per cell, so that all cells look the same; small cells, which would waste
/// too much space, have fractional sizes.
function wholePixels(size, cells) {
    const pixels = size * devicePixelRatio;
    return pixels < leastWhole ? Math.floor(pixels * cells) / cells / devicePixelRatio
                      : Math.floor(pixels) / devicePixelRatio;
}

function widestOf(side) {
    pen.font = `bold ${font}`;
    let widest = 0;
    for (const label of side.tokens ? side.labels : side.labels.slice(-1))
        widest = Math.max(widest, pen.measureText(visible(label)).width);
    return widest;
}

/// If there are more cells than pixels.
function sayPooled(width, height) {
    element('pooled').hidden = width >= map.columns.size && height >= map.rows.size;
}

const windowSize = () => [document.querySelector('main').clientWidth, innerHeight, devicePixelRatio].join();
let laidOutFor = '';

/// If the window has changed.
function layOutAnew() {
    if (windowSize() !== laidOutFor) layOut();
}

/// Nothing if the page has no width, as in a hidden frame.
function layOut() {
    const chart = element('chart'), columnsOf = element('columns').style;
    columnsOf.setProperty('--map-width', '100%');
    const room = chart.clientWidth;
    if (room === 0) return;
    laidOutFor = windowSize();
    const heightRoom = Math.max(260, Math.min(innerHeight - 340, 0.74 * innerHeight, 1000));
    const rows = map.rows.size, columns = map.columns.size;
    const left = Math.ceil(Math.max(56, Math.min(map.widestRow, widestLabel, room / 3.5) + 10));
    const upright = Math.ceil(Math.max(52, Math.min(map.widestColumn, widestLabel) + 12));
    // In narrower windows the map scrolls.
    let width = Math.min(biggestCell, Math.max(leastMap, room - left - overhang) / columns);
    let height = Math.min(biggestCell, Math.max(leastMap, heightRoom - upright - overhang) / rows);
    // Square unless one side is so much longer that cells would vanish.
    const square = Math.min(width, height);
    width = Math.max(square, Math.min(width, rows > 4 * columns ? 16 : square));
    height = Math.max(square, Math.min(height, columns > 4 * rows ? 16 : square));
    const grown = 2 ** zoom;
    const cellWidth = wholePixels(Math.min(biggestCell, width * grown), columns);
    const cellHeight = wholePixels(Math.min(biggestCell, height * grown), rows);
    const isFlat = !map.columns.tokens || map.widestColumn + 8 <= cellWidth;
    const top = isFlat ? 52 : upright;

    const whole = left + columns * cellWidth + overhang, deep = top + rows * cellHeight + overhang;
    columnsOf.setProperty('--map-width', `${Math.max(whole, leastChart)}px`);
    element('extent').style.width = `${whole}px`;
    element('extent').style.height = `${deep}px`;
    view.style.maxHeight = `${heightRoom}px`;
    layout = {left, top, cellWidth, cellHeight, isFlat, room};
    layout.width = Math.min(view.clientWidth, whole);
    layout.height = Math.min(view.clientHeight, deep);
    canvas.style.width = `${layout.width}px`;
    canvas.style.height = `${layout.height}px`;
    canvas.width = Math.round(layout.width * devicePixelRatio);
    canvas.height = Math.round(layout.height * devicePixelRatio);
    element('smaller').disabled = zoom === 0;
    element('larger').disabled = Math.max(cellWidth, cellHeight) * 2 > biggestCell;
    paint();
}

let painted = {};  // what `raster` holds

/// What is shown, in the colours of the scale, as large as the map.
function paint() {
    if (!shown || !layout) return;
    const width = map.columns.size * layout.cellWidth * devicePixelRatio;
    const height = map.rows.size * layout.cellHeight * devicePixelRatio;
    const next = {shown, scale: chosen.scale, width, height};
    if (Object.keys(next).some((name) => next[name] !== painted[name])) drawRaster(raster, map, shown, width, height);
    painted = next;
    sayPooled(raster.width, raster.height);
    draw();
}

/// The start of a cell, in pixels of the canvas.
const leftOf = (column) => layout.left + column * layout.cellWidth - view.scrollLeft;
const topOf = (row) => layout.top + row * layout.cellHeight - view.scrollTop;

/// The cell below a point of the window, null outside of the map; on labels its row or column is null.
function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const row = y < layout.top ? null : Math.floor((y - topOf(0)) / layout.cellHeight);
    const column = x < layout.left ? null : Math.floor((x - leftOf(0)) / layout.cellWidth);
    if (row >= map.rows.size || column >= map.columns.size || (row === null && column === null)) return null;
    return {row, column};
}

// ---- The map: drawing

const draw = oncePerFrame(() => shown && layout && drawMap());

function drawMap() {
    const {left, top, width, height, cellWidth, cellHeight} = layout;
    const rows = map.rows.size, columns = map.columns.size;
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width - left, height - top);
    pen.clip();
    if (shown.hasMasked) {
        pen.fillStyle = cssColor('--masked');
        pen.fillRect(leftOf(0), topOf(0), columns * cellWidth, rows * cellHeight);
    }
    pen.imageSmoothingEnabled = cellWidth * devicePixelRatio < leastWhole;  // cells of uneven sizes
    pen.drawImage(raster, leftOf(0), topOf(0), columns * cellWidth, rows * cellHeight);
    const inView = {
        firstRow: Math.max(0, Math.floor((top - topOf(0)) / cellHeight)),
        endRow: Math.min(rows, Math.ceil((height - topOf(0)) / cellHeight)),
        firstColumn: Math.max(0, Math.floor((left - leftOf(0)) / cellWidth)),
        endColumn: Math.min(columns, Math.ceil((width - leftOf(0)) / cellWidth)),
    };
    if (Math.min(cellWidth, cellHeight) >= 12) drawGaps(inView);
    if (cellWidth >= 38 && cellHeight >= 16) drawNumbers(inView);
    drawChosen();
    if (isPointing) drawCursor();
    pen.restore();
    drawRowLabels(inView);
    drawColumnLabels(inView);
    drawAxes();
}

function drawGaps({firstRow, endRow, firstColumn, endColumn}) {
    const end = topOf(endRow), right = leftOf(endColumn);
    pen.fillStyle = cssColor('--ground');
    for (let row = firstRow + 1; row < endRow; ++row)
        pen.fillRect(leftOf(firstColumn), topOf(row) - 0.5, right - leftOf(firstColumn), 1);
    for (let column = firstColumn + 1; column < endColumn; ++column)
        pen.fillRect(leftOf(column) - 0.5, topOf(firstRow), 1, end - topOf(firstRow));
}

/// As many digits as fit in a cell.
function shortText(value) {
    const size = Math.abs(value);
    if (value === 0) return '0';
    if (size >= 0.005 && size < 100) return value.toFixed(2);
    return size >= 100 && size < 10000 ? value.toFixed(0) : value.toExponential(0);
}

function drawNumbers({firstRow, endRow, firstColumn, endColumn}) {
    pen.font = font;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    for (let row = firstRow; row < endRow; ++row) {
        const full = fullOf(map, shown, row);
        for (let column = firstColumn; column < endColumn; ++column) {
            const i = row * map.columns.size + column;
            if (shown.flags[i] || !Number.isFinite(shown.numbers[i])) continue;
            pen.fillStyle = inkOn(colorAt(map, positionOf(map, shown.numbers[i], full)));
            pen.fillText(shortText(shown.numbers[i]), leftOf(column) + layout.cellWidth / 2,
                         topOf(row) + layout.cellHeight / 2, layout.cellWidth - 4);
        }
    }
}

/// Around the row of the selected query, or the column of the selected key; at a distance from
/// small cells, which it would hide.
function drawChosen() {
    if (chosen.row === null) return;
    const isRow = chosen.by === 'row', rows = map.rows.size, columns = map.columns.size;
    const {cellWidth, cellHeight} = layout;
    const apart = Math.max(0.5, (6 - (isRow ? cellHeight : cellWidth)) / 2);
    const x = isRow ? leftOf(0) : leftOf(chosen.column), y = isRow ? topOf(chosen.row) : topOf(0);
    const width = isRow ? columns * cellWidth : cellWidth, height = isRow ? cellHeight : rows * cellHeight;
    for (const [color, line, far] of [[cssColor('--ground'), 3, 0.5], [cssColor('--chosen'), 1.5, 0]]) {
        pen.strokeStyle = color;
        pen.lineWidth = line;
        pen.strokeRect(x - apart - far, y - apart - far, width + 2 * (apart + far), height + 2 * (apart + far));
    }
}

/// A frame in two colours, visible on every background, also around small cells.
function drawCursor() {
    const grow = (size) => Math.max(0, (6 - size) / 2);
    const across = grow(layout.cellWidth), down = grow(layout.cellHeight);
    const frame = (inset, color, line) => {
        pen.strokeStyle = color;
        pen.lineWidth = line;
        pen.strokeRect(leftOf(cursor.column) - across + inset, topOf(cursor.row) - down + inset,
                       layout.cellWidth + 2 * (across - inset),
                       layout.cellHeight + 2 * (down - inset));
    };
    frame(0.5, '#000', 4);
    frame(0.5, '#fff', 2);
}

/// The label, shortened to `room`.
function fitted(label, room) {
    const text = visible(label);
    if (pen.measureText(text).width <= room) return text;
    const characters = Array.from(text.slice(0, 200));
    while (characters.length > 1 && pen.measureText(characters.join('') + '…').width > room)
        characters.pop();
    return characters.join('') + '…';
}

/// As many labels as fit at a distance of `room` pixels, and always those of `wanted`, instead of
/// labels near them.
function labelsToDraw(first, end, size, wanted, room = labelRoom) {
    const step = Math.ceil(room / size), apart = room / size;
    const taken = [];
    for (const index of wanted)
        if (index >= first && index < end && taken.every((other) => Math.abs(index - other) >= apart))
            taken.push(index);
    const indices = [];
    for (let i = Math.ceil(first / step) * step; i < end; i += step)
        if (taken.every((other) => Math.abs(i - other) >= apart)) indices.push(i);
    return indices.concat(taken);
}

/// The cursor's position on a side, and the selected one.
function wantedOn(side) {
    const wanted = isPointing ? [cursor[side]] : [];
    return chosen.by === side && chosen.row !== null ? [...wanted, chosen[side]] : wanted;
}

function setLabelStyle(side, index) {
    const isChosen = chosen.by === side && chosen[side] === index;
    const isCurrent = isPointing && cursor[side] === index;
    pen.font = isChosen || isCurrent ? `bold ${font}` : font;
    pen.fillStyle = cssColor(isChosen ? '--accent' : isCurrent ? '--ink' : '--muted');
}

function drawRowLabels({firstRow, endRow}) {
    const {left, top, height, cellHeight} = layout;
    pen.save();
    pen.beginPath();
    pen.rect(0, top - overhang, left, height - top + overhang);
    pen.clip();
    pen.textAlign = 'right';
    pen.textBaseline = 'middle';
    for (const row of labelsToDraw(firstRow, endRow, cellHeight, wantedOn('row'))) {
        setLabelStyle('row', row);
        pen.fillText(fitted(map.rows.labels[row], left - 8), left - 6, topOf(row) + cellHeight / 2);
    }
    pen.restore();
}

function drawColumnLabels({firstColumn, endColumn}) {
    const {left, top, width, cellWidth, isFlat} = layout;
    pen.save();
    pen.beginPath();
    pen.rect(left - overhang, 0, width - left + overhang, top);
    pen.clip();
    pen.textBaseline = 'middle';
    pen.textAlign = isFlat ? 'center' : 'left';
    const apart = isFlat ? map.widestColumn + 8 : labelRoom;
    for (const column of labelsToDraw(firstColumn, endColumn, cellWidth, wantedOn('column'), apart)) {
        setLabelStyle('column', column);
        const text = fitted(map.columns.labels[column], isFlat ? apart : top - 10);
        pen.save();
        const middle = leftOf(column) + cellWidth / 2;
        pen.translate(isFlat ? Math.min(middle, width - pen.measureText(text).width / 2) : middle,
                      isFlat ? top - 10 : top - 5);
        if (!isFlat) pen.rotate(-Math.PI / 2);
        pen.fillText(text, 0, 0);
        pen.restore();
    }
    pen.restore();
}

/// In the corner, above the first label of the rows.
function drawAxes() {
    pen.textAlign = 'right';
    pen.textBaseline = 'alphabetic';
    pen.font = `italic ${font}`;
    pen.fillStyle = cssColor('--muted');
    const room = layout.left - overhang - 4;
    pen.fillText(`${map.columns.axis} →`, room, layout.top - 34, room);
    pen.fillText(`${map.rows.axis} ↓`, room, layout.top - 17, room);
}

// ---- The cell under the cursor

function say() {
    if (!isPointing || !shown) {
        element('value').textContent = matchMedia('(pointer: coarse)').matches
            ? 'Tap a cell for its number.' : 'Point at a cell, or go to it with Tab and the arrow keys.';
        return;
    }
    const number = made('span', 'number', numberText(cursor.row * map.columns.size + cursor.column));
    const isMasked = number.textContent === 'masked';
    const hasNumber = !isMasked && number.textContent !== 'no number';
    const isPooled = map.rows.step * map.columns.step > 1 && hasNumber;
    element('value').replaceChildren(...nameOf(map.rows, cursor.row), ', ',
                                     ...nameOf(map.columns, cursor.column),
                                     isPooled ? map.diverging ? ': largest by magnitude ' : ': largest ' : ': ', number,
                                     shown.meanOf && !isMasked ? `, ${headCount(shown.meanOf)}` : '');
}

function moveTo(row, column) {
    cursor = {row: Math.min(Math.max(row, 0), map.rows.size - 1),
              column: Math.min(Math.max(column, 0), map.columns.size - 1)};
    isPointing = true;
    say();
    draw();
}

function scrollToCell(row, column) {
    const {left, top, width, height, cellWidth, cellHeight} = layout;
    const x = leftOf(column), y = topOf(row);
    if (x < left) view.scrollLeft -= left - x;
    if (x + cellWidth > width) view.scrollLeft += x + cellWidth - width;
    if (y < top) view.scrollTop -= top - y;
    if (y + cellHeight > height) view.scrollTop += y + cellHeight - height;
}
