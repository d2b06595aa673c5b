"""Application services for a design space alone: conversion, description, sampling, size."""
