import { listAt, recordAt, textAt } from '../../objects/read.ts';

const none = '<none>';

/** Labels as `a=b,c=d`, sorted by key (apimachinery `labels.FormatLabels`). */
export function labelsText(labels: unknown): string {
  const parts = Object.entries(recordAt(labels))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${String(value)}`);
  return parts.length === 0 ? none : parts.join(',');
}

/** A label selector with its requirements sorted by key (apimachinery `meta/v1.FormatLabelSelector`). */
export function selectorText(selector: unknown): string {
  const requirements: { key: string; text: string }[] = [];
  for (const [key, value] of Object.entries(recordAt(selector, 'matchLabels'))) {
    requirements.push({ key, text: `${key}=${String(value)}` });
  }
  for (const expression of listAt(selector, 'matchExpressions')) {
    const key = textAt(expression, 'key');
    const values = listAt(expression, 'values').map(String).sort().join(',');
    const text = requirementText(key, textAt(expression, 'operator'), values);
    if (text === undefined) return '<error>';
    requirements.push({ key, text });
  }
  requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return requirements.length === 0 ? none : requirements.map(({ text }) => text).join(',');
}

function requirementText(key: string, operator: string, values: string): string | undefined {
  switch (operator) {
    case 'In':
      return `${key} in (${values})`;
    case 'NotIn':
      return `${key} notin (${values})`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return undefined;
  }
}
