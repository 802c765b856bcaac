// Package orderedmap has no entries: no document is ever read.
package orderedmap

import "iter"

type Map[K comparable, V any] struct{}

func New[K comparable, V any]() *Map[K, V] { return &Map[K, V]{} }

func Len[K comparable, V any](*Map[K, V]) int { return 0 }

func (*Map[K, V]) Get(K) (value V, ok bool) { return }

func (*Map[K, V]) GetOrZero(K) (value V) { return }

func (*Map[K, V]) Set(K, V) (value V, ok bool) { return }

func (*Map[K, V]) Delete(K) (value V, ok bool) { return }

func (*Map[K, V]) FromOldest() iter.Seq2[K, V] { return func(func(K, V) bool) {} }

func (*Map[K, V]) KeysFromOldest() iter.Seq[K] { return func(func(K) bool) {} }
