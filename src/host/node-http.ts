/**
 * What servers and clients use of `node:http`. To import that module evaluates all of its exports, and `http.WebSocket`
 * loads the fetch of Node.js: 13 MiB and 60 ms of CPU. Types are imported from `node:http`.
 */
export const { createServer, METHODS, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');
