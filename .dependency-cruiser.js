/** Circles of imports, between files and between folders, are errors. Who may import whom is in eslint.config.js. */
export default {
  forbidden: [
    { name: 'no-circles-of-files', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-circles-of-folders', severity: 'error', scope: 'folder', from: {}, to: { circular: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Imports of types count too.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
