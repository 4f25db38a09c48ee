import type { PoolSquare } from '../../../view/rows/rows.ts';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

const side = 11;
const step = 14;
const states = ['free', 'used', 'quarantined', 'reserved'] as const;

/** A square an address, drawn as one path a state: a pool of 1,024 costs four elements. The table below says the same. */
export function PoolSquares(props: {
  readonly squares: readonly PoolSquare[];
  readonly onPoint: (address: string | undefined) => void;
}) {
  const { squares, onPoint } = props;
  const box = useRef<HTMLDivElement>(null);
  const [perRow, setPerRow] = useState(32);
  useLayoutEffect(() => {
    const look = (): void => {
      const fitting = Math.floor((box.current?.clientWidth ?? 0) / step);
      // A power of two where there is room for one: rows then are subnets.
      const power = 2 ** Math.floor(Math.log2(Math.max(fitting, 8)));
      setPerRow(Math.min(power, 64));
    };
    look();
    const observer = new ResizeObserver(look);
    if (box.current !== null) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const rows = Math.ceil(squares.length / perRow);
  const [width, height] = [Math.min(perRow, squares.length) * step, rows * step];
  const counts = states.map(
    (state) => `${squares.filter((square) => square.state === state).length} ${state}`,
  );
  return (
    <div ref={box} class="squares">
      <svg
        role="img"
        aria-label={counts.join(', ')}
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        onPointerMove={(event) => {
          const { left, top } = event.currentTarget.getBoundingClientRect();
          const column = Math.floor((event.clientX - left) / step);
          const row = Math.floor((event.clientY - top) / step);
          onPoint(squares[row * perRow + column]?.address);
        }}
        onPointerLeave={() => onPoint(undefined)}
      >
        {states.map((state) => (
          <path key={state} class={`square ${state}`} d={pathOf(squares, state, perRow)} />
        ))}
        <path class="hatch" d={hatchOf(squares, perRow)} />
      </svg>
    </div>
  );
}

function pathOf(squares: readonly PoolSquare[], state: PoolSquare['state'], perRow: number): string {
  return squares
    .map((square, index) => {
      if (square.state !== state) return '';
      const [x, y] = placeOf(index, perRow);
      return `M${x + 0.5} ${y + 0.5}h${side - 1}v${side - 1}h${1 - side}z`;
    })
    .join('');
}

/** A stroke through each quarantined square: a sign beside the colour. */
function hatchOf(squares: readonly PoolSquare[], perRow: number): string {
  return squares
    .map(({ state }, index) => {
      if (state !== 'quarantined') return '';
      const [x, y] = placeOf(index, perRow);
      return `M${x + 1} ${y + side - 1}L${x + side - 1} ${y + 1}`;
    })
    .join('');
}

function placeOf(index: number, perRow: number): readonly [number, number] {
  return [(index % perRow) * step, Math.floor(index / perRow) * step];
}
