import type { ComponentChildren } from 'preact';
import { withQuery } from '../state/place.ts';
import { ExportMenu, type Picture } from './export-menu.tsx';
import { usePage } from './page-context.ts';

/** What several views are made of. */

/**
 * What stands above a view: what is shown, filters, the table beside the picture, and what can be taken along.
 *
 * @param picture of what is shown; absent: there is none now.
 * @param name of files.
 * @param command that prints the same.
 */
export function Toolbar(props: {
  readonly summary: ComponentChildren;
  readonly children?: ComponentChildren;
  readonly picture?: (() => Picture) | undefined;
  readonly name?: string;
  readonly command?: string;
  readonly hasTable?: boolean;
}) {
  const { place, go } = usePage();
  const isTable = place.query['table'] === '1';
  return (
    <div class="toolbar">
      <span class="summary">{props.summary}</span>
      {props.children}
      <span class="end">
        {props.hasTable === true && (
          <button
            type="button"
            class="quiet"
            aria-pressed={isTable}
            onClick={() => go(withQuery(place, { table: isTable ? undefined : '1' }))}
          >
            Table
          </button>
        )}
        {props.name !== undefined && props.command !== undefined && (
          <ExportMenu picture={props.picture} name={props.name} command={props.command} />
        )}
      </span>
    </div>
  );
}

/** A view without content: one sentence, and what makes some. */
export function Empty({
  sentence,
  children,
}: {
  readonly sentence: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <p>
        <bdi>{sentence}</bdi>
      </p>
      {children}
    </div>
  );
}

/**
 * A box to check, which the place keeps.
 *
 * @param on its word while it is checked. @param off while it is not; absent: it then has none, and else while checked.
 */
export function PlaceCheck(props: {
  readonly name: string;
  readonly on?: string;
  readonly off?: string;
  readonly children: ComponentChildren;
}) {
  const { place, go } = usePage();
  const { name, on, off, children } = props;
  const value = place.query[name];
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={on === undefined ? value !== off : value === on}
        onChange={({ currentTarget }) => go(withQuery(place, { [name]: currentTarget.checked ? on : off }))}
      />{' '}
      {children}
    </label>
  );
}

/**
 * A choice, which the place keeps.
 *
 * @param value that is chosen. @param choices values with their words.
 */
export function PlaceSelect(props: {
  readonly name: string;
  readonly label: string;
  readonly isLabelHidden?: boolean;
  readonly class?: string;
  readonly value: string;
  readonly choices: Iterable<readonly [value: string, words: string]>;
}) {
  const { place, go } = usePage();
  const { name, value } = props;
  return (
    <label class={props.class}>
      <span class={props.isLabelHidden === true ? 'hidden' : undefined}>{props.label} </span>
      <select
        value={value}
        onChange={({ currentTarget }) => go(withQuery(place, { [name]: currentTarget.value }))}
      >
        {[...props.choices].map(([each, words]) => (
          <option key={each} value={each}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

/** How many rows have changed while their order is held. */
export function Pending({ count }: { readonly count: number }) {
  const { refreshNow } = usePage();
  if (count === 0) return null;
  return (
    <button type="button" class="quiet pending" onClick={refreshNow}>
      {count} {count === 1 ? 'change' : 'changes'} · <kbd>.</kbd> shows {count === 1 ? 'it' : 'them'}
    </button>
  );
}

/** A heading, and what is under it. */
export function Section(props: {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly aside?: ComponentChildren;
  readonly class?: string;
}) {
  return (
    <section class={`section ${props.class ?? ''}`}>
      <h2>
        {props.title}
        {props.aside !== undefined && <span class="aside">{props.aside}</span>}
      </h2>
      {props.children}
    </section>
  );
}

/** Objects as YAML to edit, as high as they are long. @param id of its label. */
export function YamlInput(props: {
  readonly id: string;
  readonly yaml: string;
  readonly onInput: (yaml: string) => void;
}) {
  const { id, yaml, onInput } = props;
  return (
    <textarea
      id={id}
      rows={Math.min(24, yaml.split('\n').length + 1)}
      spellcheck={false}
      value={yaml}
      onInput={({ currentTarget }) => onInput(currentTarget.value)}
    />
  );
}
