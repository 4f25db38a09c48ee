import { describe } from 'vitest';
import { makers, type Maker } from './gate.ts';

/** Describes the same tests in namespaces of root and of an ordinary user; who is skipped says in its name why. */
export function forMakers(name: string, tests: (maker: Maker) => void): void {
  for (const { maker, missing } of makers) {
    const lacks = missing === '' ? '' : ` (missing: ${missing})`;
    describe.skipIf(missing !== '')(`${name}, in namespaces of ${maker}${lacks}`, () => tests(maker));
  }
}
