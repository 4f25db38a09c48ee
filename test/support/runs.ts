/**
 * How many cases a property is tried with: few in `npm test`, which find what is plainly broken, all in
 * `npm run test:long`.
 */
export function runs(few: number, all: number): number {
  return process.env['PROPERTY_RUNS'] === 'all' ? all : few;
}
