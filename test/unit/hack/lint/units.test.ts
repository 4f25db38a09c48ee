import { RuleTester } from 'eslint';
import tseslint from 'typescript-eslint';
import { describe, it } from 'vitest';
import { units } from '../../../../hack/lint/units.js';

RuleTester.describe = describe;
RuleTester.it = it;
const tester = new RuleTester({ languageOptions: { parser: tseslint.parser } });

const unit = [{ messageId: 'unit' }];
const milliseconds = [{ messageId: 'milliseconds' }];

tester.run('units', units, {
  valid: [
    '/** Milliseconds between looks. */ const lookMs = 20;',
    'interface A { /** Seconds. */ readonly holdSeconds: number }',
    // No number, and the word of the RFC.
    '/** Milliseconds by unit. */ const units: ReadonlyMap<string, number> = new Map();',
    'interface A { /** Seconds. */ readonly ttl: number }',
    'await clock.sleep(lookMs, signal); setTimeout(end, 20); setTimeout(end, ms); setTimeout(end);',
    'await sleep(this.#options.lookMs); AbortSignal.timeout(given[0]);',
  ],
  invalid: [
    { code: '/** Milliseconds between looks. */ const look = 20;', errors: unit },
    { code: '/** Seconds. */ export const hold = 9;', errors: unit },
    { code: 'interface A { /** Seconds; at most 3. */ readonly hold?: number | undefined }', errors: unit },
    { code: 'class A { /** Milliseconds since 1970. */ #until = 0; }', errors: unit },
    { code: 'await this.#clock.sleep(delay, signal);', errors: milliseconds },
    {
      code: 'setTimeout(end, this.#pause); setInterval(look, every);',
      errors: [...milliseconds, ...milliseconds],
    },
    {
      code: 'await sleep(waitSeconds); AbortSignal.timeout(limit);',
      errors: [...milliseconds, ...milliseconds],
    },
  ],
});
