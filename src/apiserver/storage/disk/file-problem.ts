import { resolve } from 'node:path';

/** Messages for system errors of files and directories. */
const problems: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'this user may not write there: make it the owner, or name another place'],
  ['EDQUOT', 'the quota of this user is used up'],
  ['EEXIST', 'what is there is no directory'],
  ['EIO', 'the disk fails'],
  ['EISDIR', 'it is a directory'],
  ['ELOOP', 'symbolic links lead in a circle'],
  ['EMFILE', 'too many files are open'],
  ['ENAMETOOLONG', 'the name is too long'],
  ['ENFILE', 'too many files are open'],
  ['ENOENT', 'no directory can be made there'],
  ['ENOSPC', 'the disk is full: make room and start again'],
  ['ENOTDIR', 'it is a file, or below one'],
  ['EPERM', 'the system does not allow it'],
  ['EROFS', 'the file system is read-only: mount it for writing, or name another place'],
]);
/** SQLITE_FULL */
const sqliteFull = 13;

/**
 * Why a file or directory cannot be used, as a message for operators; undefined for other errors.
 *
 * @param place the path of the file or directory. The path in the error is added when it differs.
 */
export function fileProblem(error: unknown, place: string): string | undefined {
  if (!(error instanceof Error) || Reflect.get(error, 'syscall') === 'listen') return undefined;
  if (Reflect.get(error, 'errcode') === sqliteFull) return problems.get('ENOSPC');
  // Checks of Node itself have codes such as ERR_FS_EISDIR.
  const problem = problems.get(String(Reflect.get(error, 'code')).replace('ERR_FS_', ''));
  const named: unknown = Reflect.get(error, 'path');
  if (problem === undefined || typeof named !== 'string' || resolve(named) === resolve(place)) return problem;
  return `${problem} (${named})`;
}
