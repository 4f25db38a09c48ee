import { type Element, keyText, valueText } from './elements.ts';

/** The change of one element. Maps cannot replace: that is a deletion and an addition in one transaction. */
export interface ElementChange {
  readonly kind: 'add' | 'replace' | 'delete';
  /** As it is to be, or as it was where it goes. */
  readonly element: Element;
}

/** Elements by {@link elementText}. */
export type ElementsByText = Map<string, Element>;

/** @param elements none twice. */
export function byText(elements: Iterable<Element>): ElementsByText {
  const found: ElementsByText = new Map();
  for (const element of elements) found.set(elementText(element), element);
  return found;
}

/** The changes from one state to the other. @param before is emptied. @param after no element twice. */
export function difference(before: ElementsByText, after: Iterable<Element>): readonly ElementChange[] {
  const changes: ElementChange[] = [];
  const isNew = before.size === 0;
  for (const element of after) {
    const text = isNew ? '' : elementText(element);
    const former = before.get(text);
    before.delete(text);
    if (former === undefined) changes.push({ kind: 'add', element });
    else if (valueText(former.value) !== valueText(element.value)) changes.push({ kind: 'replace', element });
  }
  for (const element of before.values()) changes.push({ kind: 'delete', element });
  before.clear();
  return changes;
}

/** The key of an element in the table. */
export function elementText({ set, key }: Element): string {
  return `${set} ${keyText(key)}`;
}
