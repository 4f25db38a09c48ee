import { plain } from '../../objects/plain.ts';

/** How a text of a cluster stands in each format of a picture, and what verdicts look like there. */

export type PictureVerdict = 'pass' | 'allow' | 'deny' | 'unknown';

/** Entities of Mermaid: nothing of a text can end its label or begin Markdown. */
export function mermaidText(text: string): string {
  return plain(text).replaceAll(/[^\p{L}\p{N} .,:/()[\]=+→…-]/gu, (sign) => `#${sign.codePointAt(0)};`);
}

/** In double quotes. */
export function dotText(text: string): string {
  return plain(text).replaceAll(/["\\]/g, String.raw`\$&`);
}

/** In an element or attribute. What XML 1.0 does not know as a character becomes `?`. */
export function xmlText(text: string): string {
  return plain(text)
    .replaceAll(/\p{Surrogate}|[\ufffe\uffff]/gu, '?')
    .replaceAll(/[&<>"']/g, (sign) => `&#${sign.codePointAt(0)};`);
}

/** Allow is blue and deny vermilion: colours that the usual colour blindness tells apart. */
export const mermaidClasses = [
  'classDef pass fill:#fff,stroke:#666,color:#000',
  'classDef allow fill:#dbe9f6,stroke:#0072b2,color:#000',
  'classDef deny fill:#fbe3d6,stroke:#d55e00,color:#000',
  'classDef unknown fill:#eee,stroke:#666,color:#000,stroke-dasharray:4',
];

export const dotColors: Readonly<Record<PictureVerdict, string>> = {
  ...{ pass: '#666666', allow: '#0072b2', deny: '#d55e00', unknown: '#666666' },
};

/** For both colour schemes. */
export const svgStyle =
  'text{fill:#111}rect{fill:#fff;stroke:#666}path{fill:none;stroke:#666}.allow{fill:#dbe9f6;stroke:#0072b2}.deny{fill:#fbe3d6;stroke:#d55e00}.unknown{stroke-dasharray:4}@media(prefers-color-scheme:dark){text{fill:#eee}rect{fill:#1b1b1b}.allow{fill:#10314a}.deny{fill:#4a2410}}';
