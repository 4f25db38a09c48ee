import { describe, expect, test } from 'vitest';
import { fileProblem } from '../../../../../src/apiserver/storage/disk/files.ts';

function systemError(code: string, more: object = {}): Error {
  return Object.assign(new Error(`${code}: as the system says it`), { code, ...more });
}

describe('what is wrong with a file', () => {
  test.each([
    [systemError('EACCES', { path: '/a' }), /^this user may not write there/],
    [systemError('EROFS', { path: '/a/' }), /^the file system is read-only: .* place$/],
    [systemError('ENOSPC', { syscall: 'write' }), /^the disk is full/],
    [systemError('EACCES', { path: '/a/log-1' }), /^this user .* place \(\/a\/log-1\)$/],
    [Object.assign(systemError('ERR_SQLITE_ERROR'), { errcode: 13 }), /^the disk is full/],
  ])('is said for %s', (error, words) => {
    expect(fileProblem(error, '/a')).toMatch(words);
  });

  test.each([
    systemError('EACCES', { syscall: 'listen', port: 443 }),
    systemError('ERR_INVALID_ARG_TYPE'),
    new Error('damaged'),
    'no error',
  ])('is nothing for %s', (error) => {
    expect(fileProblem(error, '/a')).toBeUndefined();
  });
});
