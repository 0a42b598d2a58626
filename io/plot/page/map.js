
// ---- The map: sizes

/// Whole pixels of the screen a cell, so that all cells look the same.
function wholePixels(size) {
    return size < 1 ? size : Math.floor(size * devicePixelRatio) / devicePixelRatio;
}

function widestOf(side) {
    pen.font = `bold ${font}`;
    let widest = 0;
    for (const label of side.labels)
        widest = Math.max(widest, pen.measureText(visible(label)).width);
    return widest;
}

function layOut() {
    const room = element('chart').clientWidth;
    const heightRoom = Math.max(260, Math.min(0.8 * innerHeight, 1000));
    const rows = map.rows.size, columns = map.columns.size;
    const left = Math.ceil(Math.max(56, Math.min(map.widestRow, widestLabel, room / 3.5) + 10));
    const upright = Math.ceil(Math.max(44, Math.min(map.widestColumn, widestLabel) + 12));
    let width = Math.min(biggestCell, (room - left - overhang) / columns);
    let height = Math.min(biggestCell, (heightRoom - upright - overhang) / rows);
    // Square unless one side is so much longer that cells would vanish.
    const square = Math.min(width, height);
    width = Math.max(square, Math.min(width, rows > 4 * columns ? 16 : square));
    height = Math.max(square, Math.min(height, columns > 4 * rows ? 16 : square));
    const grown = 2 ** zoom;
    const cellWidth = wholePixels(Math.min(biggestCell, width * grown));
    const cellHeight = wholePixels(Math.min(biggestCell, height * grown));
    const isFlat = !map.columns.tokens || map.widestColumn + 8 <= cellWidth;
    const top = isFlat ? 44 : upright;

    const whole = left + columns * cellWidth + overhang, deep = top + rows * cellHeight + overhang;
    element('extent').style.width = `${whole}px`;
    element('extent').style.height = `${deep}px`;
    view.style.maxHeight = `${heightRoom}px`;
    layout = {left, top, cellWidth, cellHeight, isFlat};
    layout.width = Math.min(view.clientWidth, whole);
    layout.height = Math.min(view.clientHeight, deep);
    canvas.style.width = `${layout.width}px`;
    canvas.style.height = `${layout.height}px`;
    canvas.width = Math.round(layout.width * devicePixelRatio);
    canvas.height = Math.round(layout.height * devicePixelRatio);
    element('smaller').disabled = zoom === 0;
    element('larger').disabled = Math.max(cellWidth, cellHeight) * 2 > biggestCell;
    draw();
}

/// Where a cell begins, in pixels of the canvas.
const leftOf = (column) => layout.left + column * layout.cellWidth - view.scrollLeft;
const topOf = (row) => layout.top + row * layout.cellHeight - view.scrollTop;

/// The cell below a point of the window; null outside of the map.
function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const row = Math.floor((y - topOf(0)) / layout.cellHeight);
    const column = Math.floor((x - leftOf(0)) / layout.cellWidth);
    if (y < layout.top || row < 0 || row >= map.rows.size || column >= map.columns.size) return null;
    return x < layout.left ? {row, column: null} : {row, column};
}

// ---- The map: drawing

let isDrawing = false;
function draw() {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => {
        isDrawing = false;
        drawMap();
    });
}

function drawMap() {
    const {left, top, width, height, cellWidth, cellHeight} = layout;
    const rows = map.rows.size, columns = map.columns.size;
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width - left, height - top);
    pen.clip();
    if (numbersOf(panel).hasBlocked) {
        pen.fillStyle = hatching(pen, 7);
        pen.fillRect(leftOf(0), topOf(0), columns * cellWidth, rows * cellHeight);
    }
    pen.imageSmoothingEnabled = cellWidth < 1 || cellHeight < 1;
    pen.imageSmoothingQuality = 'high';
    pen.drawImage(raster, leftOf(0), topOf(0), columns * cellWidth, rows * cellHeight);
    const shown = {
        firstRow: Math.max(0, Math.floor((top - topOf(0)) / cellHeight)),
        endRow: Math.min(rows, Math.ceil((height - topOf(0)) / cellHeight)),
        firstColumn: Math.max(0, Math.floor((left - leftOf(0)) / cellWidth)),
        endColumn: Math.min(columns, Math.ceil((width - leftOf(0)) / cellWidth)),
    };
    if (Math.min(cellWidth, cellHeight) >= 12) drawGaps(shown);
    if (cellWidth >= 38 && cellHeight >= 16) drawNumbers(shown);
    if (isPointing) drawCursor();
    pen.restore();
    drawRowLabels(shown);
    drawColumnLabels(shown);
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

/// As many digits as a cell has room for.
function shortText(value) {
    const size = Math.abs(value);
    if (value === 0) return '0';
    if (size >= 0.005 && size < 100) return value.toFixed(2);
    return size >= 100 && size < 10000 ? value.toFixed(0) : value.toExponential(0);
}

function drawNumbers({firstRow, endRow, firstColumn, endColumn}) {
    const part = numbersOf(panel);
    pen.font = font;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    for (let row = firstRow; row < endRow; ++row) {
        const full = fullOf(part, row);
        for (let column = firstColumn; column < endColumn; ++column) {
            const i = row * map.columns.size + column;
            if (part.flags[i] || !Number.isFinite(part.numbers[i])) continue;
            pen.fillStyle = inkOn(colorAt(positionOf(part.numbers[i], full)));
            pen.fillText(shortText(part.numbers[i]), leftOf(column) + layout.cellWidth / 2,
                         topOf(row) + layout.cellHeight / 2, layout.cellWidth - 4);
        }
    }
}

/// A frame in two colours, seen on every ground, around small cells too.
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

/// As many labels as there is room for, `room` pixels apart, and always the cursor's, instead of
/// those near it.
function labelsToDraw(first, end, size, current, room = labelRoom) {
    const step = Math.ceil(room / size), apart = room / size;
    const indices = [];
    for (let i = Math.ceil(first / step) * step; i < end; i += step)
        if (!isPointing || i === current || Math.abs(i - current) >= apart) indices.push(i);
    if (isPointing && current >= first && current < end && current % step) indices.push(current);
    return indices;
}

function setLabelStyle(isCurrent) {
    pen.font = isCurrent ? `bold ${font}` : font;
    pen.fillStyle = cssColor(isCurrent ? '--ink' : '--muted');
}

function drawRowLabels({firstRow, endRow}) {
    const {left, top, height, cellHeight} = layout;
    pen.save();
    pen.beginPath();
    pen.rect(0, top - overhang, left, height - top + overhang);
    pen.clip();
    pen.textAlign = 'right';
    pen.textBaseline = 'middle';
    for (const row of labelsToDraw(firstRow, endRow, cellHeight, cursor.row)) {
        setLabelStyle(isPointing && row === cursor.row);
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
    for (const column of labelsToDraw(firstColumn, endColumn, cellWidth, cursor.column, apart)) {
        setLabelStyle(isPointing && column === cursor.column);
        const text = fitted(map.columns.labels[column], isFlat ? apart : top - 10);
        pen.save();
        pen.translate(leftOf(column) + cellWidth / 2, isFlat ? top - 10 : top - 5);
        if (!isFlat) pen.rotate(-Math.PI / 2);
        pen.fillText(text, 0, 0);
        pen.restore();
    }
    pen.restore();
}

function drawAxes() {
    pen.textAlign = 'right';
    pen.textBaseline = 'alphabetic';
    pen.font = `italic ${font}`;
    pen.fillStyle = cssColor('--muted');
    const room = layout.left - overhang - 4;
    pen.fillText(`${map.columns.axis} →`, room, layout.top - overhang - 19, room);
    pen.fillText(`${map.rows.axis} ↓`, room, layout.top - overhang - 4, room);
}

// ---- What the cursor is on

function say() {
    if (!isPointing) {
        element('value').textContent = 'Point at a cell, or go to it with Tab and the arrow keys.';
        return;
    }
    const number = document.createElement('span');
    number.className = 'number';
    number.textContent = numberText(cursor.row * map.columns.size + cursor.column);
    const isMean = map.rows.step * map.columns.step > 1 && number.textContent !== 'blocked';
    element('value').replaceChildren(...nameOf(map.rows, cursor.row), ', ',
                                     ...nameOf(map.columns, cursor.column),
                                     isMean ? ': mean ' : ': ', number);
}

function moveTo(row, column) {
    cursor = {row: Math.min(Math.max(row, 0), map.rows.size - 1),
              column: Math.min(Math.max(column, 0), map.columns.size - 1)};
    isPointing = true;
    say();
    draw();
}

function scrollToCursor() {
    const {left, top, width, height, cellWidth, cellHeight} = layout;
    const x = leftOf(cursor.column), y = topOf(cursor.row);
    if (x < left) view.scrollLeft -= left - x;
    if (x + cellWidth > width) view.scrollLeft += x + cellWidth - width;
    if (y < top) view.scrollTop -= top - y;
    if (y + cellHeight > height) view.scrollTop += y + cellHeight - height;
}
