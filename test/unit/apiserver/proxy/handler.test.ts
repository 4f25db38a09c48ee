import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { rewriteLinks } from '../../../../src/apiserver/proxy/handler.ts';

const mark = (link: string): string => `[${link}]`;

describe('links', () => {
  test.each([
    ['<a href="/x">', '<a href="[/x]">'],
    ["<a class=c href='/x' >", "<a class=c href='[/x]' >"],
    ['<A HREF=/x>', '<A HREF=[/x]>'],
    ['<a href = "/x">', '<a href = "[/x]">'],
    ['<img src="a" longdesc="b" alt="c"/>', '<img src="[a]" longdesc="[b]" alt="c"/>'],
    ['<a\nhref="/x"\n>text</a>', '<a\nhref="[/x]"\n>text</a>'],
    ['<form action="/f"><input formaction=/g>', '<form action="[/f]"><input formaction=[/g]>'],
    [
      '<script src="/s.js">"<a href=/x>"</script><a href=/y>',
      '<script src="[/s.js]">"<a href=/x>"</script><a href=[/y]>',
    ],
    ['<style><a href=/x></STYLE><a href=/y>', '<style><a href=/x></STYLE><a href=[/y]>'],
    ['<!-- <a href="/x"> --><a href="/y">', '<!-- <a href="/x"> --><a href="[/y]">'],
    ['<a data-href="/x" title="href=/y">', '<a data-href="/x" title="href=/y">'],
    ['<p href="/x">', '<p href="/x">'],
    ['1 < 2 <a href=/x>', '1 < 2 <a href=[/x]>'],
    ['<!DOCTYPE html><html manifest="/m">', '<!DOCTYPE html><html manifest="[/m]">'],
    ['<a href="/x', '<a href="/x'],
    ['<a href', '<a href'],
    ['<', '<'],
    ['<constructor href="/x">', '<constructor href="/x">'],
  ])('%s', (html, expected) => {
    expect(rewriteLinks(html, mark)).toBe(expected);
  });

  const soup = fc.string({
    unit: fc.constantFrom(
      '<',
      '>',
      'a',
      ' ',
      'href',
      '=',
      '"',
      "'",
      '/',
      '<!--',
      '-->',
      '<script',
      '</script',
      'img',
      'src',
      '\n',
    ),
    maxLength: 60,
  });

  test('nothing else changes, whatever the page looks like', () => {
    fc.assert(
      fc.property(soup, (html) => {
        expect(rewriteLinks(html, (link) => link)).toBe(html);
        const links: string[] = [];
        const marked = rewriteLinks(html, (link) => {
          links.push(link);
          return `\u0001${link}`;
        });
        expect(marked.replaceAll('\u0001', '')).toBe(html);
        expect(marked.split('\u0001').length - 1).toBe(links.length);
      }),
      { numRuns: 1000 },
    );
  });

  test('a page made to be slow is not', () => {
    // each of these takes a quadratic scanner minutes
    const many = 200_000;
    for (const piece of [
      '<',
      '<a ',
      '<a href=',
      '<a href="',
      '<!--',
      '<script',
      '<script>',
      '</script',
      '<a =',
    ]) {
      const html = piece.repeat(many);
      expect(rewriteLinks(html, (link) => link)).toHaveLength(html.length);
    }
  });
});
