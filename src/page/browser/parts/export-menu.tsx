import { CopyButton } from './commands.tsx';
import { usePage } from './page-context.ts';

/** A picture in each of its formats. */
export interface Picture {
  readonly svg: string;
  readonly mermaid: string;
  readonly dot: string;
}

/** Takes a picture along: as files, or as the command that prints the same. */
export function ExportMenu(props: {
  readonly picture: (() => Picture) | undefined;
  readonly name: string;
  readonly command: string;
}) {
  const { announce } = usePage();
  const { picture, name, command } = props;
  const saveAs = (type: string, text: string): void => save(`${name}.${type}`, new Blob([text]));
  return (
    <details class="menu export">
      <summary>Export</summary>
      <div class="menu-body">
        {picture !== undefined && (
          <>
            <button type="button" onClick={() => saveAs('svg', picture().svg)}>
              SVG
            </button>
            <button
              type="button"
              onClick={() => {
                pngOf(picture().svg).then(
                  (png) => save(`${name}.png`, png),
                  () => announce('this browser cannot draw the picture'),
                );
              }}
            >
              PNG, 2×
            </button>
            <button type="button" onClick={() => saveAs('mmd', picture().mermaid)}>
              Mermaid
            </button>
            <button type="button" onClick={() => saveAs('dot', picture().dot)}>
              DOT
            </button>
          </>
        )}
        <CopyButton text={command} what={`: ${command}`} label="Copy command" />
      </div>
    </details>
  );
}

function save(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** @throws {Error} the picture is too large for a canvas. */
async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = 2 * image.width;
  canvas.height = 2 * image.height;
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done, fail) => {
    canvas.toBlob((png) => (png === null ? fail(new Error('no picture')) : done(png)), 'image/png');
  });
}
