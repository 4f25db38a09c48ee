import fc from 'fast-check';

/**
 * The gate looks at the same cases each time, so that it fails for what was changed and not for its luck;
 * `FAST_CHECK_SEED=7 npx vitest run …` looks at others.
 */
const seed = Number(process.env['FAST_CHECK_SEED'] ?? 20260101);

// Without `defaultSizeToMax…`, a list that a test bounds by `maxLength` alone has ten items at most.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed, defaultSizeToMaxWhenMaxSpecified: true });
